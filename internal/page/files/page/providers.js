// How fast each provider may be asked, and how far that is used: over all runs together.

import { ask, now } from "./api.js";
import { el, keyed, setText, show } from "./dom.js";
import { moment } from "./moment.js";
import { bar } from "./progress.js";
import { count, per, plural, visible } from "./text.js";

export function providersView(page) {
  const body = el("tbody");
  const table = el(
    "table",
    { class: "providers" },
    el("caption", { class: "unseen" }, "Providers, each with its credential"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Provider"), el("th", { scope: "col" }, "Limits and their use now"), el("th", { scope: "col" }, "Not before"), el("th", { scope: "col", class: "number" }, "At once, now"), el("th", { scope: "col" }, "Last call"))),
    body,
  );
  const scroll = el("div", { class: "scroll", role: "region", "aria-label": "Providers", tabindex: 0 }, table);
  const empty = el("p", { class: "empty" }, "Loading …");
  show(scroll, false);
  return {
    node: el("section", { "aria-labelledby": "providers-title" }, el("h1", { id: "providers-title" }, "Providers"), el("p", { class: "subtitle" }, "What all runs together may ask of each provider, and when it can be asked next."), scroll, empty),
    load: (signal) => ask("providers", { signal }),
    show({ providers = [] }) {
      page.title("Providers · Sluice");
      keyed(body, providers, (scope) => scope.scope, providerLine);
      show(scroll, providers.length > 0);
      show(empty, providers.length === 0);
      setText(empty, "No provider has been asked in the last days.");
      this.tick(now());
    },
    pace: ({ providers = [] }) => (providers.some((scope) => scope.leased > 0 || scope.heldUntil) ? [2_000, 10_000] : [10_000, 60_000]),
    tick: (at) => [...body.children].forEach((row) => row.onTick(at)),
  };
}

function providerLine(first) {
  const limits = el("td", { class: "limits" });
  const held = moment("free");
  const flying = el("td", { class: "number" });
  const last = moment();
  const refusals = el("span", { class: "note" });
  const name = [el("bdi", {}, visible(first.provider)), first.scope === first.provider ? null : el("span", { class: "note" }, visible(first.scope.slice(first.provider.length + 1)))];
  const node = el("tr", {}, el("th", { scope: "row" }, name), limits, el("td", {}, held.node, refusals), flying, el("td", {}, last.node));
  node.onTick = (at) => [held, last].forEach((part) => part.tick(at));
  return {
    node,
    update(scope) {
      keyed(limits, scope.limits ?? [], (limit) => `${limit.rate}/${limit.perMs}`, limitLine);
      held.update(scope.heldUntil);
      last.update(scope.lastGrant);
      setText(refusals, scope.refusals > 0 ? `${plural(scope.refusals, "refusal", "refusals")} in a row` : "");
      setText(flying, scope.leased > 0 ? count(scope.leased) : "–");
    },
  };
}

function limitLine() {
  const picture = bar();
  const used = el("span", { class: "figure" });
  return {
    node: el("div", { class: "progress limit" }, picture.node, used),
    update(limit) {
      picture.update({ total: limit.rate, waiting: limit.recent });
      setText(used, `${count(limit.recent)} of ${count(limit.rate)} per ${per(limit.perMs)}`);
    },
  };
}
