// All runs. The API lists them by their ids, of which those that it makes itself sort by time; within what is shown the
// newest comes first, however it is called.

import { ask, now, withQuery } from "./api.js";
import { badge, el, keyed, setAttr, setText, show } from "./dom.js";
import { bar } from "./progress.js";
import { away, clock, count, exactly, money, percent, roughly, visible } from "./text.js";

const active = new Set(["staging", "running"]);
const waits = new Set(["parked", "paused"]);

// listView shows a page of the list; `before` names the run that the page before ended with.
export function listView(parameters, page) {
  const before = parameters.get("before") ?? "";
  const body = el("tbody");
  const columns = ["Run", "Status", "Rows", "Failed", "Cost", "Started", "Next"];
  const numbers = new Set(["Failed", "Cost"]);
  const table = el(
    "table",
    { class: "runs" },
    el("caption", { class: "unseen" }, "Runs"),
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col", class: `c-${name.toLowerCase()}${numbers.has(name) ? " number" : ""}` }, name)))),
    body,
  );
  const empty = el("p", { class: "empty" });
  const older = el("a", { class: "button", href: "#/", rel: "next" }, "More runs");
  const newest = el("a", { class: "button", href: "#/" }, "First page");
  const parts = [];
  show(table, false);
  show(older, false);
  show(newest, before !== "");
  return {
    node: el("section", { "aria-labelledby": "runs-title" }, el("h1", { id: "runs-title" }, "Runs"), el("div", { class: "scroll", role: "region", "aria-label": "List of runs", tabindex: 0 }, table), empty, el("p", { class: "pager" }, newest, older)),
    load: (signal) => ask(withQuery("runs", { before }), { signal }),
    show({ runs = [], next }) {
      page.title("Runs · Sluice");
      runs.sort((a, b) => new Date(b.createdAt) - new Date(a.createdAt));
      keyed(body, runs, (run) => run.run, (run) => lineOf(run, parts));
      show(table, runs.length > 0);
      show(empty, runs.length === 0);
      setText(empty, before ? "There are no more runs." : "There are no runs yet. One is started by `sluice run`, or by POST /runs.");
      show(older, Boolean(next));
      if (next) setAttr(older, "href", `#/?${new URLSearchParams({ before: next })}`);
      this.tick(now());
    },
    pace: ({ runs = [] }) => (runs.some((run) => active.has(run.status)) ? [4_000, 15_000] : runs.some((run) => waits.has(run.status)) ? [10_000, 30_000] : [20_000, 120_000]),
    tick: (at) => parts.forEach((part) => part.node.isConnected && part.tick(at)),
  };
}

function lineOf(first, parts) {
  const status = badge();
  const progress = bar();
  const link = el("a", { href: `#/runs/${encodeURIComponent(first.run)}` }, el("bdi", {}, visible(first.run)));
  const name = el("bdi", { class: "name" });
  const rows = el("span", { class: "figure" });
  const failed = el("td", { class: "number c-failed" });
  const cost = el("td", { class: "number c-cost" });
  const started = el("time");
  const next = el("span");
  let run = first;
  const part = {
    node: el(
      "tr",
      {},
      el("th", { scope: "row", class: "c-run" }, link, name),
      el("td", { class: "c-status" }, status.node),
      el("td", { class: "c-rows" }, el("div", { class: "progress" }, progress.node, rows)),
      failed,
      cost,
      el("td", { class: "c-started" }, started),
      el("td", { class: "c-next" }, next),
    ),
    update(fresh) {
      run = fresh;
      const ended = run.completed + run.failed;
      setText(name, visible(run.name ?? ""));
      show(name, Boolean(run.name) && run.name !== run.run);
      status.update(run.status);
      progress.update({ total: run.rows, completed: run.completed, failed: run.failed });
      setText(rows, run.rows > 0 ? `${count(ended)} of ${count(run.rows)}` : "–");
      setAttr(rows, "title", percent(ended, run.rows) || null);
      setText(failed, run.failed > 0 ? count(run.failed) : "–");
      failed.classList.toggle("bad", run.failed > 0);
      setText(cost, run.stats?.costMicros ? roughly(run.stats.costMicros) : "–");
      setAttr(cost, "title", run.stats?.costMicros ? money(run.stats.costMicros) : null);
    },
    tick(at) {
      const began = new Date(run.startedAt ?? run.createdAt);
      setText(started, clock(began, at));
      setAttr(started, "datetime", began.toISOString());
      setAttr(started, "title", exactly(began));
      setText(next, whatNext(run, at));
    },
  };
  parts.push(part);
  return part;
}

// whatNext says what is known of the time to come, or when it was over.
function whatNext(run, at) {
  if (run.status === "parked" && run.wakeAt) return `goes on ${away(new Date(run.wakeAt), at)}`;
  if (run.status === "paused") return "waits to be resumed";
  return run.finishedAt ? `ended ${clock(new Date(run.finishedAt), at)}` : "";
}
