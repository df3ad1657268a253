// Questions before something is done that cannot be undone.

import { el, setText, show } from "./dom.js";
import { visible } from "./text.js";

// confirm asks in a dialog, and resolves to whether it was done. `run` does it; where it fails the dialog stays, and
// says why. `field` asks for a text, which run gets.
export function confirm({ title, text, action, run, field = null, danger = false }) {
  const input = field && el("textarea", { id: "dialog-field", rows: 3, spellcheck: "false", required: true, placeholder: field.hint });
  if (input) input.value = field.value;
  const error = el("p", { class: "error", role: "alert", hidden: true });
  const back = el("button", { type: "button" }, "Back");
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const form = el(
    "form",
    {},
    el("h2", { id: "dialog-title" }, title),
    el("p", { id: "dialog-text" }, text),
    input && el("label", { for: "dialog-field" }, field.label),
    input,
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
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      show(error, false);
      try {
        await run(input?.value ?? "");
        done = true;
        dialog.close();
      } catch (failure) {
        setText(error, visible(failure.message));
        show(error, true);
        go.disabled = false;
        go.focus();
      }
    });
    dialog.showModal();
    (input ?? back).focus();
  });
}
