// What can be done to a run, each offered only where it means something.

import { ask, parse } from "./api.js";
import { confirm } from "./dialog.js";
import { el, setText, show } from "./dom.js";
import { count, money, plural, visible } from "./text.js";

const going = new Set(["staging", "running", "parked"]);
const halted = new Set(["paused", "cancelled", "failed"]);

// verbs says when each is offered, and how it is asked about; one without a question is done at once.
const verbs = {
  pause: {
    label: "Pause",
    offered: (run) => going.has(run.status) && !run.asked,
    said: (name) => `Run ${name} is being paused.`,
  },
  resume: {
    label: "Resume",
    offered: (run) => halted.has(run.status),
    said: (name) => `Run ${name} goes on.`,
    question: (run, name) => run.status === "paused" && /^the budget\b/.test(run.pause?.reason ?? "") && overBudget(run, name),
  },
  retry: {
    label: "Retry failed rows …",
    offered: (run) => run.status === "completed" && run.failed > 0,
    said: (name) => `The failed rows of run ${name} are run again.`,
    question: (run) => ({
      title: "Retry the failed rows?",
      action: "Retry them",
      text: `${plural(run.failed, "row is", "rows are")} run again from the call that failed, which is made again, and paid for again. The other rows stay as they are.`,
      fields: [
        {
          label: "Rows of which nobody knows whether their call was executed (OUTCOME_UNKNOWN)",
          options: [["", "leave them as they are"], ["repeat", "make the call again: it may be executed, and paid for, twice"], ["accept", "take the call for executed"]],
        },
        { label: "What their column takes: JSON", hint: "null", when: [0, "accept"] },
      ],
      body: unknownRows,
    }),
  },
  cancel: {
    label: "Cancel …",
    offered: (run) => (going.has(run.status) || run.status === "paused") && run.asked !== "cancel",
    said: (name) => `Run ${name} is being cancelled.`,
    question: (run, name) => ({
      title: `Cancel run ${name}?`,
      action: "Cancel the run",
      danger: true,
      text: "Calls under way are broken off, and may be charged for all the same. What is done by then is kept, and the run can be resumed; until then there is no finished table.",
    }),
  },
};

// unknownRows says what is done with calls of unknown outcome. The value is JSON alone: a text that was meant to be true or a
// number would stay in the table for good.
function unknownRows(unknown, text) {
  const given = text.trim();
  if (!given) return unknown ? { unknown } : {};
  try {
    return { unknown, value: parse(given) };
  } catch {
    throw new Error('the value is JSON, such as true, 42, {"sent": true}, or "a text" in quotes');
  }
}

// overBudget asks for another budget: with the one that is spent the run would pause again.
function overBudget({ budget }, name) {
  const { calls = 0, costMicros = 0 } = budget?.limit ?? {};
  return {
    title: `Resume run ${name}?`,
    action: "Resume",
    text: "Its budget is spent. With a greater one it goes on until that is spent, too; what has been spent so far counts.",
    fields: [
      { label: "Budget in calls, in all", hint: calls > 0 ? `as it is: ${count(calls)}` : "not bounded" },
      { label: "Budget in money, in all", hint: costMicros > 0 ? `as it is: ${money(costMicros)}` : "not bounded" },
    ],
    body: (calls, cost) => {
      const budget = {};
      if (calls.trim()) budget.calls = amount(calls, "calls");
      if (cost.trim()) budget.cost = amount(cost, "money");
      return Object.keys(budget).length > 0 ? { budget } : {};
    },
  };
}

function amount(text, of) {
  const n = Number(text.trim());
  if (!(n > 0) || (of === "calls" && !Number.isSafeInteger(n))) throw new Error(`a budget in ${of} is a number above 0, such as 500`);
  return n;
}

// actions makes the buttons.
export function actions(base, id, page) {
  const name = visible(id);
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  let run = null;

  const tell = (error) => {
    if (error?.kind === "key") page.report(error);
    setText(problem, error ? visible(error.message) : "");
    show(problem, Boolean(error));
  };
  const post = (verb, body = {}) => ask(`${base}/${verb}`, { method: "POST", body });
  const done = (verb) => {
    page.announce(verbs[verb].said(name));
    page.refresh();
  };
  const act = (verb) => async (event) => {
    tell(null);
    const question = verbs[verb].question?.(run, name);
    if (question) {
      const { body = () => ({}) } = question;
      if (await confirm({ ...question, run: async (...texts) => post(verb, body(...texts)) })) done(verb);
      return;
    }
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await post(verb);
      done(verb);
    } catch (error) {
      tell(error);
    } finally {
      button.disabled = false;
    }
  };

  const nodes = Object.entries(verbs).map(([verb, { label, offered }]) => ({ offered, node: el("button", { type: "button", id: `do-${verb}`, hidden: true, on: { click: act(verb) } }, label) }));
  const save = el("button", { type: "button", id: "do-download", class: "primary", hidden: true, on: { click: () => download(`${base}/export`, `${id}.csv`).then(() => tell(null), tell) } }, "Download the table");
  return {
    node: el("div", { class: "buttons", role: "group", "aria-label": "What can be done" }, nodes.map(({ node }) => node), save, problem),
    update(fresh) {
      run = fresh;
      for (const { offered, node } of nodes) show(node, offered(run));
      show(save, run.status === "completed" || Boolean(run.wholeAt));
    },
  };
}

// download asks for a link, and follows it. Links work for a while, and for whoever has them.
async function download(path, filename) {
  const { value } = await ask(path);
  follow(value.url, filename);
}

// follow fetches a file of the web, and goes nowhere else.
export function follow(address, filename) {
  const url = new URL(address, document.baseURI);
  if (!/^https?:$/.test(url.protocol)) throw new Error("the address of the file is none of the web");
  const link = document.createElement("a");
  link.href = url.href;
  link.download = filename;
  link.rel = "noreferrer";
  document.body.append(link);
  link.click();
  link.remove();
}
