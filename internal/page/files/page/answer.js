// The answer that a row waits for.

import { ask, parse } from "./api.js";
import { confirm } from "./dialog.js";
import { count, plural, visible } from "./text.js";

// answer asks for a value and sends it. The first answer counts, so what happens is said before it is sent.
export async function answer(row, run, page) {
  const { key, column } = row.waits;
  let answered = null;
  const done = await confirm({
    title: "Answer",
    text: `Row ${count(row.row)} waits in ${visible(column)} for an answer to ${visible(key)}. All rows of this run that wait for it take it. The first answer counts and cannot be changed.`,
    fields: [{ label: "Answer: JSON, or else a text", hint: 'true, 42, "text", {"a": 1}', rows: 3, required: true }],
    action: "Send the answer",
    run: async (text) => {
      answered = (await ask("answers", { method: "POST", body: { key, value: valueOf(text), run } })).value;
    },
  });
  if (done) {
    page.announce(answered.taken > 0 ? `${plural(answered.taken, "row goes", "rows go")} on with the answer.` : "There was an answer already, which stands.");
    page.refresh();
  }
  return done;
}

// valueOf takes JSON as JSON, and anything else as the text that it is.
function valueOf(text) {
  try {
    return parse(text);
  } catch {
    return text;
  }
}
