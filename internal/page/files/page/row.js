// All of one row.

import { el } from "./dom.js";
import { count, visible } from "./text.js";
import { whole } from "./value.js";

// detail shows the error, every cell and every column of the input.
export function detail(row) {
  const parts = [];
  if (row.error) {
    parts.push(section("Error", [["column", row.error.column], ["code", row.error.code], ["message", row.error.message], ["status", row.error.status], ["attempt", row.error.attempt]]));
  }
  parts.push(section("Cells", Object.entries(row.cells ?? {})), section("Input", Object.entries(row.input ?? {})));
  return el("div", { class: "row-detail" }, parts);
}

function section(title, entries) {
  const there = entries.filter(([, value]) => value !== undefined && value !== "");
  if (there.length === 0) return null;
  return el("section", {}, el("h3", {}, title), el("dl", {}, there.map(([name, value]) => el("div", {}, el("dt", {}, el("bdi", {}, visible(name))), el("dd", {}, ...shown(value))))));
}

function shown(value) {
  if (value === null) return [el("span", { class: "none" }, "null")];
  const { text, cut } = whole(value);
  const body = el("pre", { tabindex: text.length > 400 ? 0 : null, dir: "auto" }, text);
  return cut ? [body, el("p", { class: "note" }, `The first part of ${count(cut)} characters; the download has all of them.`)] : [body];
}
