// What the work has come to: calls, money, time.

import { el, keyed, setAttr, setText, show } from "./dom.js";
import { clock, count, dollars, exactly, money, span, visible } from "./text.js";

export function facts() {
  const calls = group("calls", "Calls");
  const cost = group("cost", "Cost");
  const time = group("time", "Time");
  let run = null;
  return {
    node: el("div", { class: "facts" }, calls.node, cost.node, time.node),
    update(fresh) {
      run = fresh;
      calls.update(callsOf(run.stats ?? {}));
      cost.update(costOf(run));
    },
    tick(at) {
      if (run) time.update(timeOf(run, at));
    },
  };
}

// group is a list of names and values under a heading.
function group(id, title) {
  const list = el("dl");
  const node = el("section", { class: "card", "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), list);
  return {
    node,
    update(items) {
      const there = items.filter(Boolean);
      keyed(list, there, ([name]) => name, factLine);
      show(node, there.length > 0);
    },
  };
}

function factLine([name]) {
  const value = el("dd");
  return {
    node: el("div", {}, el("dt", {}, name), value),
    update([, text, title]) {
      setText(value, text);
      setAttr(value, "title", title ?? null);
    },
  };
}

const callsOf = (s) => [
  ["needed", count(s.logical)],
  ["dispatched", count(s.dispatched)],
  ["refused with 429", count(s.refused429)],
  ["reused in this run", count(s.reused)],
  ["known from earlier runs", count(s.cached)],
];

const enough = 1_000; // rows, for a cost by the million that is more than that of beginning

function costOf(run) {
  const { bill } = run;
  return [
    ["charged by the providers", money(run.stats?.costMicros)],
    bill && ["AWS at list prices", dollars(bill.total), visible(bill.prices ?? "")],
    bill?.perMillionRows > 0 && run.rows >= enough && ["AWS, a million rows", dollars(bill.perMillionRows)],
  ];
}

function timeOf(run, at) {
  const s = run.stats ?? {};
  const point = (name, text) => text && [name, clock(new Date(text), at), exactly(new Date(text))];
  return [
    point("started", run.startedAt ?? run.createdAt),
    point("ended", run.finishedAt),
    ["at work", span(s.sliceMs)],
    ["of it, all rows waiting", span(s.residentWaitMs)],
    ["slices, parks", `${count(s.slices)}, ${count(s.parks)}`],
    ["rows held, in all", span(s.heldMs)],
  ];
}
