// The calls that are made, and what is published, once every row has ended.

import { follow } from "./actions.js";
import { badge, el, keyed, setText, show } from "./dom.js";
import { shorten, visible } from "./text.js";

export function finishView() {
  const body = el("tbody");
  const table = el("table", { class: "finish", "aria-labelledby": "finish-title" }, el("thead", {}, el("tr", {}, ["Step", "Status", "Result"].map((name) => el("th", { scope: "col" }, name)))), body);
  const node = el("section", { class: "card", "aria-labelledby": "finish-title", hidden: true }, el("h2", { id: "finish-title" }, "At the end"), el("div", { class: "scroll" }, table));
  return {
    node,
    update({ finish = [] }) {
      keyed(body, finish.map((step, i) => ({ ...step, i })), (step) => step.i, stepLine);
      show(node, finish.length > 0);
    },
  };
}

function stepLine() {
  const name = el("bdi");
  const status = badge();
  const result = el("bdi");
  let step = null;
  const get = el("button", { type: "button", class: "quiet", on: { click: () => follow(step.link.url, step.publish) } }, "Download");
  return {
    node: el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, status.node), el("td", { class: "wrap" }, result, get)),
    update(fresh) {
      step = fresh;
      setText(name, visible(step.call ?? `publish ${step.publish}`));
      status.update(step.error ? "failed" : "completed");
      setText(result, step.error ? visible(`${step.error.code}: ${step.error.message}`) : step.result === undefined ? "" : shorten(visible(JSON.stringify(step.result)), 300));
      show(get, Boolean(step.link));
    },
  };
}
