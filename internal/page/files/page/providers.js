// How fast each provider may be asked, and how far that is used: over all runs together.

import { ask, now } from "./api.js";
import { el, keyed, setText, show } from "./dom.js";
import { moment } from "./moment.js";
import { bar } from "./progress.js";
import { stacked, stackedLine } from "./stacked.js";
import { away, count, per, plural, span, visible } from "./text.js";
import { why } from "./why.js";

const columns = [["Provider"], ["Limits, and used now"], ["Not before"], ["At once, now", "number"], ["Last call"]];

export function providersView(page) {
  const body = el("tbody", { role: "rowgroup" });
  const table = stacked({ class: "providers" }, el("caption", { class: "unseen" }, "Providers, each with its credential"), columns, body);
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
  const held = moment("free");
  const flying = el("span");
  const last = moment();
  const reason = el("span", { class: "note" });
  const refusals = el("span", { class: "note" });
  const found = el("p", { class: "note found" });
  const rules = el("div");
  const name = [el("bdi", {}, visible(first.provider)), first.scope === first.provider ? null : el("span", { class: "note" }, visible(first.scope.slice(first.provider.length + 1)))];
  const node = stackedLine(columns, [name, [rules, found], [held.node, reason, refusals], [flying], [last.node]]);
  let scope = first;
  node.onTick = (at) => {
    [held, last].forEach((part) => part.tick(at));
    setText(reason, scope.heldUntil && new Date(scope.heldUntil) > at ? why(scope) : "");
    setText(found, scope.found ? foundOut(scope.found, at) : "");
  };
  return {
    node,
    update(fresh) {
      scope = fresh;
      keyed(rules, scope.limits ?? [], (limit) => `${limit.rate}/${limit.perMs}`, limitLine);
      held.update(scope.heldUntil);
      last.update(scope.lastGrant);
      setText(refusals, scope.refusals > 0 ? `${plural(scope.refusals, "refusal", "refusals")} in a row` : "");
      setText(flying, scope.leased > 0 ? count(scope.leased) : "–");
    },
  };
}

// foundOut says what is known of a provider that declares no limits.
function foundOut({ concurrency, refused, everyMs, refusedAtMs, testAt, latencyMs, bestLatencyMs }, at) {
  const parts = [`${plural(concurrency, "call", "calls")} at once${refused ? ` (${count(refused)} were refused)` : ""}`];
  if (everyMs) parts.push(`one every ${span(everyMs)}${refusedAtMs ? ` (refused at one every ${span(refusedAtMs)})` : ""}`);
  if (testAt && new Date(testAt) > at) parts.push(`more is tried ${away(new Date(testAt), at)}`);
  if (latencyMs) parts.push(`an answer takes ${span(latencyMs)}${bestLatencyMs && bestLatencyMs < latencyMs ? `, at best ${span(bestLatencyMs)}` : ""}`);
  return `Found out: ${parts.join("; ")}.`;
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
