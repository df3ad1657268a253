// The rows of a run, a page at a time.

import { answer as answerRow } from "./answer.js";
import { ask, now, withQuery } from "./api.js";
import { el, keyed, setAttr, setText, show } from "./dom.js";
import { columnsOf, headOf, rowLine } from "./line.js";
import { count, plural, visible } from "./text.js";

const perPage = 50;
const looks = 20; // answers without a row, one after the other, until the reader is asked whether to go on
const filters = { "": "All", failed: "Failed", held: "Held", waiting: "Waiting", working: "At work", interrupted: "Interrupted", pending: "To do", completed: "Completed" };
const rare = new Set(["working", "interrupted"]); // only offered where there are any

export function rowsView(base, id, parameters, page) {
  let state = stateOf(parameters); // {status, from}
  let answer = null; // the page of rows that is shown
  let shownAt = null; // how many rows had ended by then
  let run = null;
  let abort = null;

  const tabs = Object.entries(filters).map(([status, label]) => [status, el("a", { href: address(id, { status, from: "" }) }, label)]);
  const head = el("tr");
  const top = el("thead", {}, head);
  const table = el("table", { class: "rows" }, el("caption", { class: "unseen" }, "Rows of the run"), top); // and a body for each row
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
    const line = (row) => rowLine(row, names, (waiting) => answerRow(waiting, id, page).then((done) => done && load()));
    keyed(table, rows, (row) => JSON.stringify([row.row, names]), line, top);
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
    offer();
    setText(news, fresh > 0 ? `${plural(fresh, "row has", "rows have")} ended since these were read.` : "");
    for (const line of table.tBodies) line.onTick(at);
  }

  function offer() {
    for (const [status, tab] of tabs) show(tab, !rare.has(status) || status === state.status || run?.[status] > 0);
  }

  for (const [status, tab] of tabs) setAttr(tab, "aria-current", status === state.status ? "true" : null);
  offer();
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
      const moved = before && (before.completed !== fresh.completed || before.failed !== fresh.failed);
      const atRest = fresh.status !== "running" && fresh.status !== "staging";
      if (!before || before.status !== fresh.status || (atRest && moved)) load();
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
