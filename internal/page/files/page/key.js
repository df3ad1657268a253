// The question for the API key of a deployment. It is asked when the server wants one, and only then.

import { el } from "./dom.js";
import { visible } from "./text.js";

// keyForm asks for the key and hands it over.
export function keyForm(refused, reason, enter) {
  const input = el("input", {
    id: "key", type: "password", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "key-help", maxlength: 256,
  });
  const problem = refused ? el("p", { class: "error", role: "alert" }, `The key was not accepted${reason ? `: ${visible(reason)}` : "."}`) : null;
  const submit = (event) => {
    event.preventDefault();
    const entered = input.value.trim();
    if (entered !== "" && /^[\x21-\x7e]+$/.test(entered)) enter(entered);
    else input.setCustomValidity("A key has letters and digits, and no spaces."), input.reportValidity();
  };
  return el(
    "form",
    { class: "key card", on: { submit, input: () => input.setCustomValidity("") } },
    el("h1", {}, "The API asks for its key"),
    problem,
    el("label", { for: "key" }, "API key"),
    el("div", { class: "line" }, input, el("button", { type: "submit", class: "primary" }, "Go on")),
    el(
      "p",
      { id: "key-help", class: "note" },
      "It is kept in this tab until you close it, is sent with each request as a header, and never becomes part of an address. Of a deployment, whoever may read it gets it by the id in the stack's output ",
      el("code", {}, "ApiKeyId"),
      ": ",
      el("code", {}, "aws apigateway get-api-key --include-value --query value --api-key ID"),
      ". Of `sluice serve`, it is the one that it was started with.",
    ),
  );
}
