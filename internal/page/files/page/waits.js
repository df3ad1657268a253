// What a run waits for: providers that said "not before", answers, and sleeping rows.

import { el, keyed, setAttr, setText, show } from "./dom.js";
import { moment } from "./moment.js";
import { count, plural, visible } from "./text.js";

// waits makes the section; it is hidden while there is nothing to wait for.
export function waits(id) {
  const body = el("tbody");
  const head = el("tr", {}, el("th", { scope: "col" }, "Provider"), el("th", { scope: "col" }, "Not before"), el("th", { scope: "col", class: "number" }, "Rows"));
  const held = el("div", { class: "scroll" }, el("table", { class: "held", "aria-labelledby": "waits-title" }, el("thead", {}, head), body));
  const others = el("p", { class: "others" });
  const words = el("span");
  const link = el("a", { href: `#/runs/${encodeURIComponent(id)}?rows=waiting` }, "Show them");
  others.append(words, " ", link);
  const node = el("section", { class: "card waits", "aria-labelledby": "waits-title", hidden: true }, el("h2", { id: "waits-title" }, "Waiting for"), held, others);
  return {
    node,
    update(run) {
      const holds = run.holds ?? [];
      keyed(body, holds, (hold) => hold.provider, holdLine);
      show(held, holds.length > 0);
      const said = otherWaits(run.waits);
      setText(words, said);
      show(others, said !== "");
      show(node, holds.length > 0 || said !== "");
    },
    tick: (at) => [...body.children].forEach((row) => row.onTick(at)),
  };
}

function otherWaits({ answers = 0, asleep = 0 } = {}) {
  const parts = [];
  if (answers > 0) parts.push(`${plural(answers, "row waits", "rows wait")} for an answer`);
  if (asleep > 0) parts.push(`${plural(asleep, "row sleeps", "rows sleep")}`);
  return parts.length > 0 ? `${parts.join(", ")}.` : "";
}

function holdLine() {
  const provider = el("bdi");
  const until = moment("now");
  const rows = el("td", { class: "number" });
  const node = el("tr", {}, el("th", { scope: "row" }, provider), el("td", {}, until.node), rows);
  node.onTick = until.tick;
  return {
    node,
    update(hold) {
      // A hold that is nobody's is a failure that is tried again after a while.
      setText(provider, hold.provider === "retry" ? "another attempt" : visible(hold.provider));
      until.update(hold.until);
      setText(rows, hold.rows > 0 ? count(hold.rows) : "–");
      setAttr(rows, "title", hold.rows > 0 ? null : "a step at the end of the run");
    },
  };
}
