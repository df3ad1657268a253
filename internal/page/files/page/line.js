// A row of the table of rows: its cells, or in their place what went wrong or what it waits for.

import { Exact, now } from "./api.js";
import { badge, el, setAttr, setText, show } from "./dom.js";
import { detail } from "./row.js";
import { away, clock, count, shorten, visible } from "./text.js";
import { brief } from "./value.js";
import { holder, why } from "./why.js";

const columnsShown = 12; // of a table with more, the rest is in each row's detail

// columnsOf are the columns of the table: the input's first, which tells one row from another, then the map's cells,
// because they are what one waits for, then the rest of the input.
export function columnsOf({ rows = [], columns }) {
  const names = columns ?? { cells: keysOf(rows, "cells"), input: keysOf(rows, "input") };
  const input = (names.input ?? []).map((name) => ({ name, input: true }));
  const cells = (names.cells ?? []).map((name) => ({ name, input: false }));
  const shown = [...input.slice(0, 1), ...cells, ...input.slice(1)].slice(0, columnsShown);
  return shown.map((column) => ({ ...column, number: allNumbers(rows.map((row) => valueOf(row, column))) }));
}

const valueOf = (row, { name, input }) => (input ? row.input : row.cells)?.[name] ?? null;

// allNumbers: a column of numbers is lined up as one.
function allNumbers(values) {
  const there = values.filter((value) => value !== null);
  return there.length > 0 && there.every((value) => typeof value === "number" || value instanceof Exact);
}

const sort = ({ input, number }) => [input && "input", number && "number"].filter(Boolean).join(" ") || null;

export function headOf(column) {
  return { node: el("th", { scope: "col", class: sort(column) }, el("bdi", {}, shorten(visible(column.name), 40))), update() {} };
}

const keysOf = (rows, part) => [...new Set(rows.flatMap((row) => Object.keys(row[part] ?? {})))];

// rowLine is a row, and below it, when it is opened, all of it: together they are a body of the table.
export function rowLine(first, names, onAnswer) {
  let row = first;
  const status = badge();
  const line = el("tr");
  const node = el("tbody", {}, line);
  const opener = openerOf(node, () => row, names.length + 2);
  const cells = names.map((column) => el("td", { class: ["cell", sort(column)].filter(Boolean).join(" ") }, el("bdi")));
  const words = el("bdi");
  const reply = el("button", { type: "button", class: "quiet", hidden: true, on: { click: () => onAnswer(row) } }, "Answer …");
  const instead = el("td", { class: "cell wide", colspan: Math.max(names.filter(({ input }) => !input).length, 1) }, words, reply);
  line.append(el("th", { scope: "row", class: "number" }, opener.button), el("td", {}, status.node));

  const arrange = (shown) => {
    const now = [...line.children].slice(2);
    if (now.length !== shown.length || shown.some((cell, i) => cell !== now[i])) line.replaceChildren(...[...line.children].slice(0, 2), ...shown);
  };
  node.onTick = (at) => {
    const said = insteadOf(row, at);
    if (said !== null) setText(words, said);
  };
  return {
    node,
    update(fresh) {
      row = fresh;
      status.update(row.status);
      show(reply, Boolean(row.waits?.key));
      setAttr(reply, "aria-label", row.waits?.key ? `Answer ${visible(row.waits.key)}` : null);
      instead.classList.toggle("bad", Boolean(row.error));
      names.forEach((column, i) => setText(cells[i].firstChild, briefly(valueOf(row, column))));
      arrange(insteadOf(row, now()) === null ? cells : around(instead, cells, names));
      node.onTick(now());
      opener.update();
    },
  };
}

const briefly = (value) => (value === null ? "" : brief(value));

// openerOf is the button with the row's number, which shows and hides all of the row.
function openerOf(node, rowOf, width) {
  const button = el("button", { type: "button", class: "row-number", "aria-expanded": "false", "aria-label": `Row ${rowOf().row}: show all of it` }, count(rowOf().row));
  let shown = null; // what the open detail was made of
  const cell = el("td", { colspan: width });
  const below = el("tr", { class: "detail" }, cell);
  const update = () => {
    if (shown === null || shown === JSON.stringify(rowOf())) return;
    shown = JSON.stringify(rowOf());
    cell.replaceChildren(detail(rowOf()));
  };
  button.addEventListener("click", () => {
    if (shown === null) {
      shown = "";
      update();
      node.append(below);
    } else {
      shown = null;
      below.remove();
    }
    setAttr(button, "aria-expanded", String(shown !== null));
  });
  return { button, update };
}

// insteadOf is what stands in place of the cells: what went wrong, or what the row waits for; null: the cells.
function insteadOf(row, at) {
  return row.error ? shorten(visible(errorText(row.error)), 300) : waitOf(row, at);
}

// waitOf says what a row waits for; null: it does not wait.
function waitOf({ held, waits }, at) {
  if (held) {
    const reason = why(held);
    return `${holder(held)}: not before ${clock(new Date(held.until), at)}, ${away(new Date(held.until), at)}${reason && `; ${reason}`}`;
  }
  if (!waits) return null;
  const until = `${clock(new Date(waits.until), at)}, ${away(new Date(waits.until), at)}`;
  if (!waits.key) return `${visible(waits.column)}: sleeps until ${until}`;
  return `${visible(waits.column)}: waits for an answer to ${shorten(visible(waits.key), 120)}, until ${until}${waits.open ? "; later ones are taken, too" : ""}`;
}

// around puts what is wrong in place of the cells, and leaves the input where it is.
function around(trouble, cells, names) {
  const at = names.findIndex(({ input }) => !input);
  const input = cells.map((cell, i) => names[i].input && cell);
  const before = at < 0 ? input : input.slice(0, at);
  return [...before, trouble, ...input.slice(before.length)].filter(Boolean);
}

const errorText = (error) => `${error.column ? `${error.column}: ` : ""}${error.code}: ${error.message}`;
