// All of one row.

import { el } from "./dom.js";
import { count, visible } from "./text.js";
import { whole } from "./value.js";

// detail shows the error, every cell and every column of the input.
export function detail(row) {
  const parts = [];
  if (row.error) {
    parts.push(section("Error", errorOf(row.error)));
    if (row.error.code === "OUTCOME_UNKNOWN") parts.push(el("p", { class: "note" }, unknownOutcome));
  }
  const cells = Object.entries(row.cells ?? {});
  const none = row.error && cells.every(([, value]) => value === null); // a row that failed keeps no cells
  parts.push(none ? null : section("Cells", cells), section("Input", Object.entries(row.input ?? {})));
  if (row.omitted?.length > 0) {
    parts.push(el("p", { class: "note" }, `Too large to be shown here, and in the table: ${row.omitted.map(visible).join(", ")}`));
  }
  return el("div", { class: "row-detail" }, parts);
}

const unknownOutcome =
  "Nobody knows whether this call was executed, and it is not made again by itself: it could be executed twice. Look for the request at the provider. " +
  "Then “Retry failed rows” makes it again, or takes it for executed with the value that you give.";

// errorOf is what is known of a failure. Which request it was matters where nobody knows whether it was carried out.
function errorOf({ column, code, message, status, attempt, dispatched, dispatch }) {
  return [
    ["column", column],
    ["code", code],
    ["message", message],
    ["the provider's status", status],
    ["attempt", attempt],
    ["may have reached the provider", dispatched ? "yes" : undefined],
    ["tool", dispatch?.tool],
    ["request", dispatch?.request],
    ["sent", dispatch?.at],
  ];
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
