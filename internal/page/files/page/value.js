// Cells: whatever JSON can hold, as text.

import { Exact } from "./api.js";
import { shorten, visible, visibleLines } from "./text.js";

const briefly = 120;
const atLength = 20_000; // characters of one value that are put on the page

// plain is a value's text: a text is itself, anything else is JSON.
function plain(value, indent) {
  if (typeof value === "string") return value;
  if (value instanceof Exact) return value.source;
  return JSON.stringify(value, null, indent);
}

// brief is a cell on one line. What would not be seen of a large value is not even looked at.
export function brief(value) {
  const text = plain(value);
  return shorten(visible(text.slice(0, briefly * 4)), briefly);
}

// whole is a cell with its lines, cut where a browser would become slow, and says so.
export function whole(value) {
  const text = plain(value, 2);
  if (text.length <= atLength) return { text: visibleLines(text), cut: 0 };
  return { text: visibleLines(text.slice(0, atLength)), cut: text.length };
}
