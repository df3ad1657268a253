// A point in time that comes nearer.

import { el, setAttr, setText } from "./dom.js";
import { away, clock, exactly } from "./text.js";

// moment shows one; `past` is what is said of one that is over, where that is not when it was.
export function moment(past = null) {
  const node = el("time");
  let when = null;
  return {
    node,
    update(text) {
      when = text ? new Date(text) : null;
      setAttr(node, "datetime", when ? when.toISOString() : null);
      setAttr(node, "title", when ? exactly(when) : null);
    },
    tick(at) {
      const known = when && (past === null || when > at);
      setText(node, known ? `${clock(when, at)}, ${away(when, at)}` : (past ?? "–"));
    },
  };
}
