// How far a run is, as a bar: what is done, what failed, what waits; the rest is not begun or at work.

import { el, setAttr, setText } from "./dom.js";
import { count } from "./text.js";

// bar makes one. Its numbers are always written beside it, so the picture itself is for the eye alone.
export function bar() {
  const parts = ["completed", "failed", "waiting", "working"].map((name) => [name, el("span", { class: `part p-${name}` })]);
  const node = el("div", { class: "bar", "aria-hidden": "true" }, parts.map(([, part]) => part));
  return {
    node,
    update(numbers) {
      for (const [name, part] of parts) {
        const share = numbers.total > 0 ? Math.min((numbers[name] ?? 0) / numbers.total, 1) : 0;
        // A failed row among millions is seen: any part that is not empty has some width.
        const width = share > 0 ? `max(${(share * 100).toFixed(3)}%, 2px)` : "0";
        if (part.dataset.width !== width) {
          part.dataset.width = width;
          part.style.width = width;
        }
      }
    },
  };
}

// legend is the numbers beside a bar, each with the mark of its part.
export function legend(names) {
  const items = Object.entries(names).map(([key, name]) => {
    const number = el("span", { class: "number" });
    const node = el("div", { class: `item l-${key}` }, el("dt", {}, name), el("dd", {}, number));
    return { key, node, number };
  });
  return {
    node: el("dl", { class: "legend" }, items.map(({ node }) => node)),
    update(numbers) {
      for (const { key, node, number } of items) {
        const n = numbers[key];
        setAttr(node, "hidden", n === undefined || n === null ? "" : null);
        setText(number, n === undefined || n === null ? "" : count(n));
      }
    },
  };
}
