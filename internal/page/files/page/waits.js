// What a run waits for: providers that said "not before", answers, and sleeping rows.

import { el, keyed, setAttr, setText, show } from "./dom.js";
import { moment } from "./moment.js";
import { stacked, stackedLine } from "./stacked.js";
import { clock, count, plural, span, visible } from "./text.js";
import { holder, why } from "./why.js";

// waits makes the section; it is hidden while there is nothing to wait for.
export function waits(id) {
  const body = el("tbody", { role: "rowgroup" });
  const held = el("div", { class: "scroll" }, stacked({ class: "held", "aria-labelledby": "waits-title" }, null, columns, body));
  const others = el("p", { class: "others" });
  const words = el("span");
  const link = el("a", { href: `#/runs/${encodeURIComponent(id)}?rows=waiting` }, "Show them");
  others.append(words, " ", link);
  const node = el("section", { class: "card waits", "aria-labelledby": "waits-title", hidden: true }, el("h2", { id: "waits-title" }, "Waiting for"), held, others);
  return {
    node,
    update(run) {
      const holds = run.holds ?? [];
      keyed(body, holds, (hold) => JSON.stringify([hold.provider, hold.scope, hold.reason, hold.code]), holdLine);
      show(held, holds.length > 0);
      const said = otherWaits(run.waits);
      setText(words, said);
      show(others, said !== "");
      show(node, holds.length > 0 || said !== "");
    },
    tick: (at) => [...body.children].forEach((row) => row.onTick(at)),
  };
}

const columns = [["Provider"], ["Not before"], ["Why"], ["Rows", "number"]];

const noticed = 5_000; // milliseconds: a shorter difference is none

function otherWaits({ answers = 0, asleep = 0 } = {}) {
  const parts = [];
  if (answers > 0) parts.push(`${plural(answers, "row waits", "rows wait")} for an answer`);
  if (asleep > 0) parts.push(`${plural(asleep, "row sleeps", "rows sleep")}`);
  return parts.length > 0 ? `${parts.join(", ")}.` : "";
}

function holdLine() {
  const provider = el("bdi");
  const until = moment("now");
  const last = el("span", { class: "note" });
  const reason = el("bdi");
  const since = el("span", { class: "note" });
  const rows = el("span");
  const node = stackedLine(columns, [[provider], [until.node, last], [reason, since], [rows]]);
  let hold = null;
  node.onTick = (at) => {
    until.tick(at);
    const spread = new Date(hold.last) - new Date(hold.until);
    setText(last, spread >= noticed ? `the last of them ${clock(new Date(hold.last), at)}` : "");
    const silent = hold.since ? at - new Date(hold.since) : 0;
    setText(since, silent >= noticed ? `it has answered no call for ${span(silent)}` : "");
  };
  return {
    node,
    update(fresh) {
      hold = fresh;
      setText(provider, holder(hold));
      until.update(hold.until);
      setText(reason, why(hold) || "–");
      setText(rows, hold.rows > 0 ? count(hold.rows) : "–");
      setAttr(rows, "title", hold.rows > 0 ? `of ${plural(hold.shards, "shard", "shards")}` : "a step at the end of the run");
    },
  };
}
