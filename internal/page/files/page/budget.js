// What a run may spend, and what of it is spent.

import { el, setText, show } from "./dom.js";
import { bar } from "./progress.js";
import { count, money, plural } from "./text.js";

// budget makes the section; it is hidden of a run that has none.
export function budget() {
  const calls = part("calls", count);
  const cost = part("costMicros", money);
  const aside = el("p", { class: "note" });
  const node = el("section", { class: "card budget", "aria-labelledby": "budget-title", hidden: true }, el("h2", { id: "budget-title" }, "Budget"), calls.node, cost.node, aside);
  return {
    node,
    update({ budget: of }) {
      show(node, Boolean(of));
      if (!of) return;
      calls.update(of);
      cost.update(of);
      const { calls: n = 0, costMicros: micros = 0 } = of.setAside;
      const amounts = [n > 0 && plural(n, "call", "calls"), micros > 0 && money(micros)].filter(Boolean);
      setText(aside, amounts.length > 0 ? `Set aside for calls under way, or lost with a process that died: ${amounts.join(", ")}.` : "");
      show(aside, amounts.length > 0);
    },
  };
}

const names = { calls: "calls", costMicros: "money" };

// part is a bound of the budget. What is set aside is spent as far as others are concerned.
function part(key, written) {
  const picture = bar();
  const figure = el("span", { class: "figure" });
  const node = el("div", { class: "progress" }, picture.node, figure);
  return {
    node,
    update({ limit, spent, setAside }) {
      const all = limit[key] ?? 0;
      show(node, all > 0);
      picture.update({ total: all, completed: spent[key] ?? 0, waiting: setAside[key] ?? 0 });
      setText(figure, `${written(spent[key])} of ${written(all)} ${names[key]}`);
    },
  };
}
