// Questions before something is done that others will notice.

import { el, setText, show } from "./dom.js";
import { visible } from "./text.js";

// confirm asks in a dialog, and resolves to whether it was done. `run` does it; where it fails the dialog stays, and
// says why. `fields` ask for texts, which run gets in their order: {label, hint, rows, required, value}, or {label, options},
// pairs of a value and its text. One with `when`, the number and the value of another, is asked for only then; else it is empty.
export function confirm({ title, text, action, run, fields = [], danger = false }) {
  const inputs = fields.map(inputOf);
  const parts = fields.map((field, i) => el("p", { class: "field" }, el("label", { for: inputs[i].id }, field.label), inputs[i]));
  const asked = (i) => !fields[i].when || inputs[fields[i].when[0]].value === fields[i].when[1];
  const arrange = () => parts.forEach((part, i) => show(part, asked(i)));
  arrange();
  const error = el("p", { class: "error", role: "alert", hidden: true });
  const back = el("button", { type: "button" }, "Back");
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const form = el(
    "form",
    {},
    el("h2", { id: "dialog-title" }, title),
    el("p", { id: "dialog-text" }, text),
    parts,
    error,
    el("div", { class: "buttons" }, back, go),
  );
  const dialog = el("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
  const opener = document.activeElement;
  document.body.append(dialog);
  return new Promise((resolve) => {
    let done = false;
    back.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (opener?.isConnected) opener.focus();
      resolve(done);
    });
    form.addEventListener("change", arrange);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      show(error, false);
      try {
        await run(...inputs.map((input, i) => (asked(i) ? input.value : "")));
        done = true;
        dialog.close();
      } catch (failure) {
        setText(error, visible(failure.message));
        show(error, true);
        go.disabled = false;
        (inputs[0] ?? go).focus();
      }
    });
    dialog.showModal();
    (inputs[0] ?? back).focus();
  });
}

function inputOf({ hint, rows = 0, required = false, value = "", options = null }, i) {
  if (options) return el("select", { id: `dialog-field-${i}` }, options.map(([of, text]) => el("option", { value: of }, text)));
  const props = { id: `dialog-field-${i}`, placeholder: hint, required, spellcheck: "false", autocomplete: "off" };
  const input = rows > 0 ? el("textarea", { ...props, rows }) : el("input", { ...props, type: "text" });
  input.value = value;
  return input;
}
