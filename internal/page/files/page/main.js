// The page: which view the address names, one poller that fills it, and what is wrong at the moment.

import { key, now } from "./api.js";
import { el, setAttr, setText, show } from "./dom.js";
import { keyForm } from "./key.js";
import { listView } from "./list.js";
import { Poller } from "./poll.js";
import { providersView } from "./providers.js";
import { runView } from "./run.js";
import { away, clock, visible } from "./text.js";

const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
const freshness = document.getElementById("freshness");
const announcer = document.getElementById("announcer");
const forget = document.getElementById("forget");
const places = document.querySelectorAll(".top nav a");

let view = null;
let poller = null;
let seenAt = null; // when the server answered last
let wrong = null; // {error, againAt}

// page is what a view may do to its surroundings.
const page = {
  title: (text) => document.title !== text && (document.title = text),
  announce: (text) => setText(announcer, text),
  refresh: () => poller?.refresh(),
  report,
};

function route() {
  poller?.stop();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [place, id] = path.split("/");
  const parameters = new URLSearchParams(query);
  if (place === "runs" && id && view?.id === decoded(id)) {
    view.go?.(parameters);
  } else {
    view?.stop?.();
    view = viewOf(place, id, parameters);
    seenAt = null;
    main.replaceChildren(view.node);
    scrollTo(0, 0);
  }
  poller = new Poller(view, report);
  poller.refresh();
}

function viewOf(place, id, parameters) {
  for (const link of places) setAttr(link, "aria-current", link.hash === (place === "providers" ? "#/providers" : "#/") ? "page" : null);
  if (place === "runs" && id) return runView(decoded(id), parameters, page);
  return place === "providers" ? providersView(page) : listView(parameters, page);
}

function decoded(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}

// report shows what went wrong, or that nothing is any more.
function report(error, againAt = null) {
  wrong = error ? { error, againAt } : null;
  if (!error) seenAt = new Date();
  if (error?.kind === "key") {
    askForKey(error);
  }
  tick();
}

function askForKey(error) {
  const refused = key.get() !== "";
  poller.stop();
  view = { node: keyForm(refused, error.message, (entered) => (key.set(entered), (view = null), route())) };
  main.replaceChildren(view.node);
  view.node.querySelector("input").focus();
  page.title("Sluice");
  wrong = null;
}

// tick moves what depends on the time alone.
function tick() {
  view?.tick?.(now());
  show(forget, key.get() !== "");
  show(trouble, wrong !== null);
  document.body.classList.toggle("stale", wrong !== null && seenAt !== null);
  if (wrong) {
    setText(message, visible(wrong.error.message));
    const when = wrong.againAt ? `Trying again ${away(new Date(wrong.againAt), new Date())}.` : "";
    const known = seenAt ? ` What is shown is as of ${clock(seenAt, new Date())}.` : "";
    setText(detail, when + known);
    show(retry, wrong.againAt !== null);
  }
  setText(freshness, seenAt && !wrong ? `as of ${clock(seenAt, new Date())}` : "");
}

const message = el("strong");
const detail = el("span", { "aria-live": "off" });
const retry = el("button", { type: "button", class: "quiet", on: { click: () => poller?.refresh() } }, "Try now");
trouble.append(message, detail, retry);
forget.addEventListener("click", () => {
  key.forget();
  view = null;
  route();
});

addEventListener("hashchange", route);
setInterval(tick, 1000);
route();
