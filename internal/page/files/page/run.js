// One run: how far it is, what it waits for and why, what it cost, and its rows.

import { actions } from "./actions.js";
import { ask, now } from "./api.js";
import { budget } from "./budget.js";
import { badge, el, setAttr, setText, show } from "./dom.js";
import { facts } from "./facts.js";
import { finishView } from "./finish.js";
import { bar, legend } from "./progress.js";
import { rowsView } from "./rows.js";
import { Speed } from "./speed.js";
import { away, clock, count, exactly, percent, plural, span, visible } from "./text.js";
import { waits } from "./waits.js";

export function runView(id, parameters, page) {
  const base = `runs/${encodeURIComponent(id)}`;
  const status = badge();
  const name = el("p", { class: "subtitle" });
  const buttons = actions(base, id, page);
  const notice = noticeOf();
  const progress = progressOf();
  const waiting = waits(id);
  const allowance = budget();
  const ending = finishView();
  const figures = facts();
  const rows = rowsView(base, id, parameters, page);
  const speed = new Speed();
  const content = el("div", { class: "content", hidden: true }, notice.node, progress.node, waiting.node, allowance.node, ending.node, figures.node, rows.node);
  const loading = el("p", { class: "empty" }, "Loading …");
  let run = null;

  return {
    id,
    node: el(
      "article",
      { "aria-labelledby": "run-title" },
      el("p", { class: "crumbs" }, el("a", { href: "#/" }, "All runs")),
      el("header", { class: "head" }, el("div", {}, el("h1", { id: "run-title" }, el("bdi", {}, visible(id))), name), status.node, buttons.node),
      loading,
      content,
    ),
    go: (fresh) => rows.go(fresh),
    load: async (signal) => {
      const { value } = await ask(base, { signal });
      return { value, text: JSON.stringify(value, (name, part) => (name === "link" ? undefined : part)) }; // links are new each time
    },
    show(fresh) {
      const before = run;
      run = fresh;
      if (before && before.status !== run.status) page.announce(`Run ${visible(id)} is ${run.status}.`);
      const numbers = numbersOf(run);
      if (before?.status !== run.status) speed.forget();
      speed.note(Date.now(), numbers.ended);
      setText(name, visible(run.name ?? ""));
      show(name, Boolean(run.name) && run.name !== id);
      status.update(run.status);
      page.title(`${titleOf(run, numbers)} · ${visible(id)} · Sluice`);
      for (const part of [buttons, waiting, allowance, ending, figures]) part.update(run);
      progress.update(run, numbers);
      rows.runChanged(before, run);
      show(loading, false);
      show(content, true);
      this.tick(now());
    },
    pace: paceOf,
    tick(at) {
      if (!run) return;
      notice.tick(run, at);
      progress.tick(run, at, speed);
      waiting.tick(at);
      figures.tick(at);
      rows.tick(at);
    },
    stop: () => rows.stop(),
  };
}

// numbersOf splits the rows into what is done, failed, waiting, at work, interrupted, and the rest. Those at work are as of a
// moment ago, and may have ended since.
function numbersOf(run) {
  const ended = run.completed + run.failed;
  const held = (run.holds ?? []).reduce((sum, hold) => sum + hold.rows, 0);
  const elsewhere = (run.waits?.answers ?? 0) + (run.waits?.asleep ?? 0);
  let left = Math.max(run.rows - ended, 0);
  const take = (n) => {
    const some = Math.min(n, left);
    left -= some;
    return some;
  };
  const [waiting, interrupted, working] = [held + elsewhere, run.interrupted ?? 0, run.working ?? 0].map(take);
  return { total: run.rows, completed: run.completed, failed: run.failed, ended, waiting, working, interrupted, left };
}

function titleOf(run, numbers) {
  return run.status === "running" && run.rows > 0 ? percent(numbers.ended, run.rows) : run.status;
}

// paceOf: a run at work moves all the time; one that is parked at its wake time, or when somebody interferes.
function paceOf(run) {
  if (run.status === "running" || run.status === "staging" || (run.asked && (!run.finishedAt || run.asked === "extend"))) return [2_000, 10_000];
  if (run.status === "parked") {
    const left = run.wakeAt ? new Date(run.wakeAt) - now() : 10_000;
    return [Math.min(Math.max(left + 500, 2_000), 5_000), Math.min(Math.max(left + 500, 2_000), 30_000)];
  }
  return run.status === "paused" ? [5_000, 60_000] : [15_000, 120_000];
}

// noticeOf is one sentence about what a person would wonder about.
function noticeOf() {
  const text = el("span");
  const node = el("p", { class: "notice", hidden: true }, text);
  return {
    node,
    tick(run, at) {
      const [kind, words] = said(run, at);
      show(node, words !== "");
      setAttr(node, "class", `notice n-${kind}`);
      setText(text, words);
    },
  };
}

function said(run, at) {
  if (run.asked === "extend") return ["calm", "The run is being extended: its new rows are being read. Until then it is as it was."];
  if (run.asked === "cancel" && !run.finishedAt) return ["warn", "The run is being cancelled: what is under way is brought to its end."];
  if (run.asked === "pause" && run.status !== "paused") return ["warn", "The run is being paused: what is under way is brought to its end."];
  switch (run.status) {
    case "staging":
      return ["calm", "The input is being read and sealed; nothing has been called yet."];
    case "parked":
      return ["calm", parkedWords(run, at)];
    case "paused":
      return ["warn", `${run.pause?.reason ? `Paused: ${visible(run.pause.reason)}.` : "Paused."} All results are saved; the run goes on when it is resumed.`];
    case "failed":
      return ["bad", `The run could not be brought to an end: ${visible(run.error ?? "no reason was recorded")}`];
    case "cancelled":
      return ["calm", "The run was cancelled. What had been done by then is kept, and the run can be resumed."];
    case "completed":
      if (run.warnings?.length > 0) return ["warn", `Every row has ended${run.failed > 0 ? `, and ${plural(run.failed, "row", "rows")} failed` : ""}; of the steps at the end of the run, some failed.`];
      return run.failed > 0 ? ["warn", `Every row has ended, and ${plural(run.failed, "row", "rows")} of ${count(run.rows)} failed. They are listed below with their reasons, and stand in the table in their place.`] : ["good", "Every row is complete."];
    default:
      if (run.interrupted > 0 && !run.working) return ["warn", "Nobody is at work on the run at the moment, and it is taken up again by itself. Rows that were at work go on from what is saved of them."];
      return ["calm", run.wholeAt ? "Every row has ended, and the table can be downloaded; the steps at the end of the run are under way." : ""];
  }
}

function parkedWords({ wakeAt, waits = {} }, at) {
  const calm = "Everything that is left has to wait, and all results are saved.";
  const when = wakeAt && `${clock(new Date(wakeAt), at)} (${away(new Date(wakeAt), at)})`;
  if (waits.answers > 0) return `${calm} The run goes on with an answer${when ? `, or by itself ${when}` : ""}.`;
  return when ? `${calm} The run goes on by itself ${when}.` : calm;
}

function progressOf() {
  const share = el("span", { class: "share" });
  const rest = el("span", { class: "pace" });
  const picture = bar();
  const marks = legend({ completed: "completed", failed: "failed", waiting: "waiting", working: "at work", interrupted: "interrupted", left: "to do", duplicates: "duplicates left out" });
  const meter = el("div", { class: "meter", role: "progressbar", "aria-label": "Rows that have ended", "aria-valuemin": 0, "aria-valuemax": 100 }, picture.node);
  return {
    node: el("section", { class: "card", "aria-labelledby": "progress-title" }, el("h2", { id: "progress-title", class: "unseen" }, "Progress"), el("p", { class: "figures" }, share, rest), meter, marks.node),
    update(run, numbers) {
      setText(share, run.rows > 0 ? `${count(numbers.ended)} of ${plural(run.rows, "row", "rows")} (${percent(numbers.ended, run.rows)})` : "No rows are known yet");
      setAttr(meter, "aria-valuenow", run.rows > 0 ? Math.floor((numbers.ended * 100) / run.rows) : 0);
      setAttr(meter, "aria-valuetext", share.textContent);
      picture.update(numbers);
      marks.update({ ...numbers, waiting: run.finishedAt ? undefined : numbers.waiting, working: numbers.working || undefined, interrupted: numbers.interrupted || undefined, left: run.finishedAt && numbers.left === 0 ? undefined : numbers.left, duplicates: run.duplicates || undefined });
    },
    tick(run, at, speed) {
      const parts = [];
      if (run.status === "running") {
        const rate = speed.rate();
        if (rate > 0) parts.push(`${rate.toFixed(1)} rows/s`);
        const left = speed.left(run.rows - run.completed - run.failed, longest(run, at));
        if (left > 0) parts.push(`about ${span(left)} left`);
      } else if (run.finishedAt && run.startedAt) {
        parts.push(`took ${span(new Date(run.finishedAt) - new Date(run.startedAt))}`);
      }
      setText(rest, parts.join(", "));
      setAttr(rest, "title", run.startedAt ? `Started ${exactly(new Date(run.startedAt))}` : null);
    },
  };
}

// longest is how long the last of the holds lasts: the run cannot end before.
const longest = (run, at) => Math.max(0, ...(run.holds ?? []).map((hold) => new Date(hold.until) - at));
