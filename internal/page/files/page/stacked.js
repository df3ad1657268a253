// A table that on a phone becomes a list, with the names of the columns beside their values. Roles are said here, because a
// table that is laid out as something else is none to a screen reader.

import { el } from "./dom.js";

// stacked makes it; `columns` are pairs of a name and a class.
export function stacked(props, caption, columns, body) {
  const head = columns.map(([name, sort]) => el("th", { scope: "col", role: "columnheader", class: sort }, name));
  return el("table", { ...props, class: `stacked ${props.class}`, role: "table" }, caption, el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)), body);
}

// stackedLine is a row of it: the content of its cells, of which the first is its head.
export function stackedLine(columns, cells) {
  const [first, ...others] = cells.map((content, i) => {
    const [name, sort] = columns[i];
    return el(i === 0 ? "th" : "td", { role: i === 0 ? "rowheader" : "cell", scope: i === 0 ? "row" : null, class: sort, "data-name": name }, el("div", {}, content));
  });
  return el("tr", { role: "row" }, first, others);
}
