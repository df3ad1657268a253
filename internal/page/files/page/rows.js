// The rows of a run, a page at a time: what became of each, its cells, its error or what it waits for.

import { ask, Exact, now, withQuery } from "./api.js";
import { badge, el, keyed, setAttr, setText, show } from "./dom.js";
import { detail } from "./row.js";
import { away, clock, count, plural, shorten, visible } from "./text.js";
import { brief } from "./value.js";

const perPage = 50;
const looks = 20; // answers without a row, one after the other, until the reader is asked whether to go on
const columnsShown = 12; // of a table with more, the rest is in each row's detail
const filters = { "": "All", failed: "Failed", held: "Held", pending: "Not ended", completed: "Completed" };

export function rowsView(base, id, parameters, page) {
  let state = stateOf(parameters); // {status, from}
  let answer = null; // the page of rows that is shown
  let shownAt = null; // how many rows had ended by then
  let run = null;
  let abort = null;

  const tabs = Object.entries(filters).map(([status, label]) => [status, el("a", { href: address(id, { status, from: "" }) }, label)]);
  const head = el("tr");
  const body = el("tbody");
  const table = el("table", { class: "rows" }, el("caption", { class: "unseen" }, "Rows of the run"), el("thead", {}, head), body);
  const scroll = el("div", { class: "scroll", role: "region", "aria-label": "Rows", tabindex: 0 }, table);
  const empty = el("p", { class: "empty" }, "Loading …");
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const news = el("span");
  const again = el("button", { type: "button", class: "quiet", id: "rows-again", on: { click: () => load() } }, "Refresh");
  const first = el("a", { class: "button", id: "rows-first", href: "#/" }, "First");
  const next = el("a", { class: "button", id: "rows-next", href: "#/", rel: "next" }, "Next");
  const where = el("span", { class: "where" });
  show(scroll, false);

  function go(fresh) {
    const wanted = stateOf(fresh);
    if (wanted.status === state.status && wanted.from === state.from && answer) return;
    state = wanted;
    load();
  }

  async function load() {
    abort?.abort();
    const mine = (abort = new AbortController());
    const ended = run ? run.completed + run.failed : null;
    setAttr(scroll, "aria-busy", "true");
    try {
      answer = await found(base, state, mine.signal);
      if (mine.signal.aborted) return;
      shownAt = ended;
      show(problem, false);
      draw();
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.kind === "key") return page.report(error);
      setText(problem, `The rows could not be read: ${visible(error.message)}`);
      show(problem, true);
    } finally {
      if (abort === mine) setAttr(scroll, "aria-busy", null);
    }
  }

  function draw() {
    const { rows = [] } = answer;
    const names = columnsOf(answer);
    keyed(head, [{ name: "Row", number: true }, { name: "Status" }, ...names], (column) => JSON.stringify(column), headOf);
    keyed(body, rows, (row) => JSON.stringify([row.row, names]), (row) => rowLine(row, names));
    show(scroll, rows.length > 0);
    show(empty, rows.length === 0);
    setText(empty, answer.next ? "None among the rows so far; there are more to look through." : emptyWords(state.status, run));
    for (const [status, tab] of tabs) setAttr(tab, "aria-current", status === state.status ? "true" : null);
    setText(where, rows.length > 0 ? `rows ${count(rows[0].row)} to ${count(rows.at(-1).row)}` : "");
    show(first, state.from !== "");
    setAttr(first, "href", address(id, { ...state, from: "" }));
    show(next, Boolean(answer.next));
    if (answer.next) setAttr(next, "href", address(id, { ...state, from: answer.next }));
    tick(now());
  }

  function tick(at) {
    const ended = run ? run.completed + run.failed : null;
    const fresh = answer && shownAt !== null && ended !== shownAt ? Math.abs(ended - shownAt) : 0;
    setText(news, fresh > 0 ? `${plural(fresh, "row has", "rows have")} ended since these were read.` : "");
    for (const line of body.children) line.onTick?.(at);
  }

  for (const [status, tab] of tabs) setAttr(tab, "aria-current", status === state.status ? "true" : null);
  return {
    node: el(
      "section",
      { class: "card rows-card", "aria-labelledby": "rows-title" },
      el("div", { class: "rows-head" }, el("h2", { id: "rows-title" }, "Rows"), el("nav", { class: "tabs", "aria-label": "Which rows" }, tabs.map(([, tab]) => tab)), el("p", { class: "news" }, news, " ", again)),
      problem,
      scroll,
      empty,
      el("p", { class: "pager" }, first, next, where),
    ),
    go,
    tick,
    stop: () => abort?.abort(),
    // runChanged reads the rows at first, and when the run has come to rest: while it works, when the reader wants.
    runChanged(before, fresh) {
      run = fresh;
      if (!before || before.status !== fresh.status) load();
    },
  };
}

// found asks until there are rows: where few rows are of a status, the server looks at so many at a time, and says where
// to look on.
async function found(base, { status, from }, signal) {
  let cursor = from;
  for (let asked = 0; ; asked++) {
    const { value } = await ask(withQuery(`${base}/rows`, { status, cursor, limit: perPage }), { signal });
    if (value.rows?.length > 0 || !value.next || asked === looks) return value;
    cursor = value.next;
  }
}

const stateOf = (parameters) => ({ status: parameters.get("rows") in filters ? (parameters.get("rows") ?? "") : "", from: parameters.get("from") ?? "" });

function address(id, { status, from }) {
  return `#${withQuery(`/runs/${encodeURIComponent(id)}`, { rows: status, from })}`;
}

function emptyWords(status, run) {
  if (run?.status === "staging") return "The input is still being read.";
  return status === "" ? "There are no rows." : `No rows are ${filters[status].toLowerCase()}.`;
}

// columnsOf are the columns of the table: the input's first, which tells one row from another, then the map's cells,
// because they are what one waits for, then the rest of the input.
function columnsOf({ rows = [], columns }) {
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

function headOf(column) {
  return { node: el("th", { scope: "col", class: sort(column) }, el("bdi", {}, shorten(visible(column.name), 40))), update() {} };
}

const keysOf = (rows, part) => [...new Set(rows.flatMap((row) => Object.keys(row[part] ?? {})))];

function rowLine(firstRow, names) {
  const status = badge();
  const toggle = el("button", { type: "button", class: "row-number", "aria-expanded": "false", "aria-label": `Row ${firstRow.row}: show all of it` }, count(firstRow.row));
  const cells = names.map((column) => el("td", { class: ["cell", sort(column)].filter(Boolean).join(" ") }, el("bdi")));
  const trouble = el("td", { class: "cell wide", colspan: Math.max(names.filter(({ input }) => !input).length, 1) }, el("bdi"));
  const line = el("tr", {}, el("th", { scope: "row", class: "number" }, toggle), el("td", {}, status.node));
  let row = firstRow;
  let open = null;
  toggle.addEventListener("click", () => {
    if (open) {
      open.remove();
      open = null;
    } else {
      open = el("tr", { class: "detail" }, el("td", { colspan: names.length + 2 }, detail(row)));
      line.after(open);
    }
    setAttr(toggle, "aria-expanded", String(open !== null));
  });
  const node = line;
  node.onTick = (at) => {
    if (row.held) setText(trouble.firstChild, `${visible(row.held.provider ?? "held")}: not before ${clock(new Date(row.held.until), at)}, ${away(new Date(row.held.until), at)}`);
  };
  return {
    node,
    update(fresh) {
      row = fresh;
      status.update(row.status);
      const said = row.error ? shorten(visible(errorText(row.error)), 300) : row.held ? " " : null;
      const shown = said === null ? cells : around(trouble, cells, names);
      const wanted = [line.children[0], line.children[1], ...shown];
      if (wanted.length !== line.children.length || wanted.some((cell, i) => cell !== line.children[i])) line.replaceChildren(...wanted);
      if (said !== null && row.error) setText(trouble.firstChild, said);
      trouble.classList.toggle("bad", Boolean(row.error));
      names.forEach((column, i) => {
        const value = valueOf(row, column);
        setText(cells[i].firstChild, value === null ? "" : brief(value));
      });
    },
  };
}

// around puts what is wrong in place of the cells, and leaves the input where it is.
function around(trouble, cells, names) {
  const at = names.findIndex(({ input }) => !input);
  const input = cells.map((cell, i) => names[i].input && cell);
  const before = at < 0 ? input : input.slice(0, at);
  return [...before, trouble, ...input.slice(before.length)].filter(Boolean);
}

const errorText = (error) => `${error.column ? `${error.column}: ` : ""}${error.code}: ${error.message}`;
