// What can be done to a run, each offered only where it means something.

import { ask } from "./api.js";
import { confirm } from "./dialog.js";
import { el, setText, show } from "./dom.js";
import { plural, visible } from "./text.js";

const going = new Set(["staging", "running", "parked"]);

// actions makes the buttons.
export function actions(base, id, page) {
  const name = visible(id);
  const post = (verb) => ask(`${base}/${verb}`, { method: "POST", body: {} });
  let run = null;
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const failed = (error) => {
    if (error?.kind === "key") page.report(error);
    setText(problem, error ? visible(error.message) : "");
    show(problem, Boolean(error));
  };

  // at once is for what can be undone.
  const atOnce = (verb, said) => async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    failed(null);
    try {
      await post(verb);
      page.announce(said);
      page.refresh();
    } catch (error) {
      failed(error);
    } finally {
      button.disabled = false;
    }
  };
  const asked = (question) => async () => {
    const q = question();
    failed(null);
    if (await confirm({ ...q, run: () => post(q.verb) })) {
      page.announce(q.said);
      page.refresh();
    }
  };

  const buttons = {
    pause: [going, "Pause", atOnce("pause", `Run ${name} is being paused.`)],
    resume: [new Set(["paused"]), "Resume", atOnce("resume", `Run ${name} goes on.`)],
    retry: [
      new Set(["completed"]),
      "Retry failed rows …",
      asked(() => ({
        verb: "retry", title: "Retry the failed rows?", action: "Retry them", said: `The failed rows of run ${name} are run again.`,
        text: `${plural(run.failed, "row is", "rows are")} run again from the cell that failed. Their calls are made again, and paid for again. The other rows stay as they are.`,
      })),
    ],
    cancel: [
      new Set([...going, "paused"]),
      "Cancel …",
      asked(() => ({
        verb: "cancel", title: `Cancel run ${name}?`, action: "Cancel the run", danger: true, said: `Run ${name} is being cancelled.`,
        text: "Nothing more is called. Rows that are done stay done; the others are not, and there will be no finished table.",
      })),
    ],
  };
  const nodes = Object.entries(buttons).map(([verb, [when, label, listener]]) => ({ verb, when, node: el("button", { type: "button", id: `do-${verb}`, hidden: true, on: { click: listener } }, label) }));
  const save = downloads(base, id, failed);
  return {
    node: el("div", { class: "buttons", role: "group", "aria-label": "What can be done" }, nodes.map(({ node }) => node), save.node, problem),
    update(fresh) {
      run = fresh;
      for (const { verb, when, node } of nodes) show(node, when.has(run.status) && (verb !== "retry" || run.failed > 0));
      show(save.node, run.status === "completed");
    },
  };
}

// downloads is the finished table. The API answers with an address that works for a while, or on a laptop for this page.
function downloads(base, id, failed) {
  const fetchIt = async () => {
    failed(null);
    try {
      const { value } = await ask(`${base}/export`);
      const link = document.createElement("a");
      link.href = safeAddress(value.url);
      link.download = `${id}.csv`;
      link.rel = "noreferrer";
      document.body.append(link);
      link.click();
      link.remove();
    } catch (error) {
      failed(error);
    }
  };
  return { node: el("button", { type: "button", id: "do-download", class: "primary", hidden: true, on: { click: fetchIt } }, "Download the table") };
}

// safeAddress follows nothing but the web.
function safeAddress(text) {
  const url = new URL(text, document.baseURI);
  if (!/^https?:$/.test(url.protocol)) throw new Error("the address of the table is none of the web");
  return url.href;
}
