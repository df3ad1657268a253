// What a run waits for: providers that said "not before", and answers of people.

import { ask } from "./api.js";
import { confirm } from "./dialog.js";
import { el, keyed, setAttr, setText, show } from "./dom.js";
import { moment } from "./moment.js";
import { count, visible } from "./text.js";

// waits makes the section; it is hidden while there is nothing to wait for.
export function waits(base, page) {
  const holds = tableOf("held", "Held by providers", ["Provider", "Until", "Rows"]);
  const answers = tableOf("answers", "Answers waited for", ["Key", "Row", "Column", "Expires", ""]);
  const node = el("div", { class: "waits" }, holds.node, answers.node);
  return {
    node,
    update(run) {
      holds.update(run.holds ?? [], (hold) => hold.provider, holdLine);
      answers.update(run.awaiting ?? [], (wait) => wait.key, (wait) => answerLine(wait, base, page));
    },
    tick: (at) => [holds, answers].forEach((table) => table.tick(at)),
  };
}

// tableOf is a small table under a heading, hidden while it is empty.
function tableOf(id, title, columns) {
  const body = el("tbody");
  const number = new Set(["Rows", "Row"]);
  const node = el(
    "section",
    { class: "card", "aria-labelledby": `${id}-title`, hidden: true },
    el("h2", { id: `${id}-title` }, title),
    el("div", { class: "scroll" }, el("table", { class: id, "aria-labelledby": `${id}-title` }, el("thead", {}, el("tr", {}, columns.map((name) => (name === "" ? el("td") : el("th", { scope: "col", class: number.has(name) ? "number" : null }, name))))), body)),
  );
  let parts = [];
  return {
    node,
    update(items, key, line) {
      const made = [];
      keyed(body, items, key, line);
      for (const row of body.children) made.push(row);
      parts = made;
      show(node, items.length > 0);
    },
    tick: (at) => parts.forEach((row) => row.onTick?.(at)),
  };
}

function holdLine() {
  const provider = el("bdi");
  const until = moment("now");
  const rows = el("td", { class: "number" });
  const node = el("tr", {}, el("th", { scope: "row" }, provider), el("td", {}, until.node), rows);
  node.onTick = until.tick;
  return {
    node,
    update(hold) {
      setText(provider, hold.provider === "retry" ? "another attempt" : visible(hold.provider));
      until.update(hold.until);
      setText(rows, count(hold.rows));
    },
  };
}

function answerLine(first, base, page) {
  const key = el("bdi");
  const row = el("td", { class: "number" });
  const column = el("bdi");
  const expires = moment("now");
  const button = el("button", { type: "button" }, "Answer …");
  let wait = first;
  button.addEventListener("click", () => answer(wait, base, page));
  const node = el("tr", {}, el("th", { scope: "row", class: "wrap" }, key), row, el("td", {}, column), el("td", {}, expires.node), el("td", { class: "act" }, button));
  node.onTick = expires.tick;
  return {
    node,
    update(fresh) {
      wait = fresh;
      setText(key, visible(wait.key));
      setText(row, count(wait.row));
      setText(column, visible(wait.column ?? ""));
      expires.update(wait.expires);
      setAttr(button, "aria-label", `Answer ${visible(wait.key)}`);
    },
  };
}

// answer asks for a value and sends it. The first answer counts, so it is confirmed by the button that sends it.
async function answer(wait, base, page) {
  const done = await confirm({
    title: "Answer",
    text: `${visible(wait.key)} is waited for by row ${count(wait.row)}. The first answer counts and cannot be changed.`,
    field: { label: "Value: JSON, or else a text", value: "", hint: "true, false, 42, \"text\", {\"a\": 1}" },
    action: "Send the answer",
    run: (text) => ask("answers", { method: "POST", body: { key: wait.key, value: valueOf(text) } }),
  });
  if (done) {
    page.announce(`The answer to ${visible(wait.key)} was sent.`);
    page.refresh();
  }
}

// valueOf takes JSON as JSON and anything else as the text that it is.
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

