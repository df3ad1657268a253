// Why somebody waits, in words.

import { visible } from "./text.js";

// reasons are those of the API. Each has a place for the status or the code of the answer behind it.
const reasons = {
  retryAfter: (code) => `it answered${code || " with a refusal"} and asked to wait`,
  cooldown: (code) => `it answered${code || " with a refusal"} and did not say how long to wait`,
  limit: () => "as many calls as its limits allow have been made",
  concurrency: () => "as many calls as may be are in flight",
  backoff: (code) => `another attempt follows${code ? ` after${code}` : ""}`,
  credential: (code) => `its credential was not taken${code ? ` (${code.trim()})` : ""}, and is read again`,
  identical: () => "another run is making the same call",
  platform: () => "the function that makes its calls was busy",
  boundary: () => "its own wait comes first",
};

// holder is whom a row waits for. A hold that is nobody's is a failure that is tried again after a while.
export const holder = ({ provider }) => (provider === "retry" ? "another attempt" : visible(provider));

// why is what is said of a hold; empty: the reason is not known.
export function why({ reason, code }) {
  const said = Object.hasOwn(reasons, reason) ? reasons[reason] : null;
  return said ? said(code ? ` ${visible(code.replace(/^HTTP_/, ""))}` : "") : "";
}
