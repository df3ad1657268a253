// Elements without markup: text only ever enters the document as text (textContent, text nodes), so that no cell, name
// or message can become anything else.

// el makes an element. Children are nodes or texts; null and false are left out. `on` holds listeners by event.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      attribute(node, name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// attribute refuses what could run: listeners as text, styles, and links that lead anywhere but into this page.
function attribute(node, name, value) {
  if (/^on|^style$|^src/i.test(name)) throw new Error(`attribute ${name} is not set from here`);
  if (/^href$/i.test(name) && !value.startsWith("#/")) throw new Error("a link leads into this page");
  node.setAttribute(name, value);
}

// setText changes a node's text if it differs: what stays the same is neither drawn nor read out again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// setAttr does the same for an attribute; null removes it.
export function setAttr(node, name, value) {
  if (value === null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) {
    attribute(node, name, String(value));
  }
}

// show hides or shows a node.
export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

const known = new WeakMap();

// keyed makes the children of a parent those of a list: an item that stays keeps its element, with focus, selection and
// scroll position. make(item) returns {node, update(item)}. What stands up to `after` is not touched.
export function keyed(parent, items, key, make, after = null) {
  const before = known.get(parent) ?? new Map();
  const now = new Map();
  let at = after ? after.nextSibling : parent.firstChild;
  for (const item of items) {
    const id = key(item);
    const part = before.get(id) ?? make(item);
    now.set(id, part);
    part.update(item);
    if (part.node === at) at = at.nextSibling;
    else parent.insertBefore(part.node, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  known.set(parent, now);
}

const paths = {
  staging: "M3 4.5h10M3 8h10M3 11.5h6",
  running: "M5 3.5v9l7-4.5z",
  parked: "M8 4v4.2l2.6 1.8M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4",
  paused: "M5.5 3.5v9M10.5 3.5v9",
  completed: "M3 8.5l3.5 3.5L13 4.5",
  failed: "M4 4l8 8M12 4l-8 8",
  cancelled: "M3.5 8h9",
};
const shapes = { ...paths, held: paths.parked, waiting: paths.parked, pending: "M5.5 8h.01M8 8h.01M10.5 8h.01", working: paths.running, interrupted: paths.paused };

// icon is the shape of a status: it tells the status without its colour. Beside it there is always the word.
export function icon(status) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", shapes[status] ?? shapes.pending);
  svg.append(path);
  return svg;
}

// badge is a status as it is shown everywhere: shape, word, colour.
export function badge() {
  const word = el("span");
  const node = el("span", { class: "badge" });
  let last = null;
  return {
    node,
    update(status) {
      if (status === last) return;
      last = status;
      setText(word, status);
      node.className = `badge s-${/^[a-z]+$/.test(status) ? status : "unknown"}`;
      node.replaceChildren(icon(status), word);
    },
  };
}
