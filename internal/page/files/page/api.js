// The HTTP API, as it is on a laptop and in the cloud: below the document's own path.

const keyName = "sluice-api-key";
const patience = 20_000; // milliseconds until a request is given up

// What can go wrong, by what the page does about it.
export class Trouble extends Error {
  constructor(kind, message, status = 0, code = "") {
    super(message);
    this.kind = kind; // "away": try again by itself; "key": ask for it; "refused": tell
    this.status = status;
    this.code = code;
  }
}

// The key lives as long as the tab, in nothing that is sent by itself, and is never part of an address.
export const key = {
  get: () => sessionStorage.getItem(keyName) ?? "",
  set: (value) => sessionStorage.setItem(keyName, value),
  forget: () => sessionStorage.removeItem(keyName),
};

// skew is the server's clock minus this one's, where they differ by more than requests take.
let skew = 0;

// now is the server's time: deadlines are in it.
export const now = () => new Date(Date.now() + skew);

function noteClock(response) {
  const at = Date.parse(response.headers.get("Date") ?? "");
  if (Number.isNaN(at)) return;
  const off = at + 500 - Date.now();
  skew = Math.abs(off) > 3000 ? off : 0;
}

// ask sends one request and returns what was answered, parsed.
export async function ask(path, { method = "GET", body, signal } = {}) {
  const headers = { Accept: "application/json" };
  if (key.get()) headers["x-api-key"] = key.get();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limits = [AbortSignal.timeout(patience)];
  if (signal) limits.push(signal);
  let response, text;
  try {
    response = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: AbortSignal.any(limits),
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble("away", error.name === "TimeoutError" ? "The server does not answer." : "The server cannot be reached.");
  }
  noteClock(response);
  return understand(response, text);
}

function understand(response, text) {
  let out;
  try {
    out = text === "" ? {} : parse(text);
  } catch {
    throw new Trouble("away", `The server answered with something else than JSON (status ${response.status}).`, response.status);
  }
  if (response.ok) return { value: out, text };
  const { code = "", message = out.message ?? "" } = out.error ?? {};
  const { status } = response;
  if (status === 401 || (status === 403 && keyCodes.has(code))) throw new Trouble("key", message, status, code);
  if (status === 429) throw new Trouble("away", "The server asks for fewer requests.", status, code);
  if (status >= 500) throw new Trouble("away", `The server has a problem: ${message || status}`, status, code);
  throw new Trouble("refused", message || `The server refused (status ${status}).`, status, code);
}

// keyCodes are those of API Gateway for a key that is missing or not known, with and without the stack's own form.
const keyCodes = new Set(["", "INVALID_API_KEY", "ACCESS_DENIED"]);

// Exact is a number that a double would change; it is shown as it was written.
export class Exact {
  constructor(source) {
    this.source = source;
  }
  toJSON() {
    return JSON.rawJSON ? JSON.rawJSON(this.source) : this.source;
  }
  toString() {
    return this.source;
  }
}

// parse reads JSON and keeps numbers exact, where the browser tells their source (all current ones).
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value) || context?.source === undefined) return value;
    const rounded = Number.isFinite(value) ? !/[.eE]/.test(context.source) && String(value) !== context.source : true;
    return rounded ? new Exact(context.source) : value;
  });
}

// withQuery writes a path with its parameters; those that are empty are left out.
export function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return query.size > 0 ? `${path}?${query}` : path;
}
