// Numbers, times and foreign text as people read them.

const grouped = new Intl.NumberFormat("en");

// count writes a number with groups: 1,234,567.
export const count = (n) => grouped.format(n ?? 0);

export const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

// percent never says 100 before all of it is done.
export const percent = (part, whole) => (whole > 0 ? `${Math.floor((part * 100) / whole)}%` : "");

// money writes millionths as a decimal number, exactly; at least two decimals, where there are any.
export function money(micros) {
  const n = BigInt(Math.round(micros ?? 0));
  const abs = n < 0n ? -n : n;
  const rest = (abs % 1_000_000n).toString().padStart(6, "0").replace(/0{1,4}$/, "");
  return `${n < 0n ? "-" : ""}${grouped.format(abs / 1_000_000n)}.${rest}`;
}

// roughly writes millionths with two decimals, so that a column of them lines up; what is less is said to be less.
export function roughly(micros) {
  if (micros > 0 && micros < 5_000) return "< 0.01";
  return new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format((micros ?? 0) / 1e6);
}

// dollars writes an amount that may be tiny.
export function dollars(amount) {
  if (!(amount > 0)) return "$0.00";
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}

// span writes milliseconds: 80 ms, 1.8 s, 12 s, 4 min 5 s, 3 h 20 min, 2 d 4 h.
export function span(ms) {
  if (!(ms > 0)) return "0 s";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

// per writes the length of a window: second, 5 s, minute, hour.
export const per = (ms) => ({ 1000: "second", 60_000: "minute", 3_600_000: "hour", 86_400_000: "day" })[ms] ?? span(ms);

const timeOfDay = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndTime = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const wholeDate = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

// clock writes a time in the reader's zone; the day is there when it is not today's.
export function clock(at, now) {
  if (at.toDateString() === now.toDateString()) return timeOfDay.format(at);
  return (at.getFullYear() === now.getFullYear() ? dayAndTime : wholeDate).format(at);
}

export const exactly = (at) => exact.format(at);

// away writes how far a time is: in 12 s, now, 3 min ago.
export function away(at, now) {
  const ms = at - now;
  if (Math.abs(ms) < 1000) return "now";
  const s = Math.ceil(Math.abs(ms) / 1000) * 1000;
  const words = s < 10_000 ? `${s / 1000} s` : s < 3_600_000 || ms > 0 ? span(s) : span(Math.floor(s / 60_000) * 60_000);
  return ms > 0 ? `in ${words}` : `${words} ago`;
}

// What a browser does not simply show: control characters, and those that reverse, reorder or hide text. They are
// written out, so that a value looks like what it is.
const unsafe = /[\p{Cc}\u2028\u2029\ufeff\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufff9-\ufffb]|\p{Cs}/gu;

const written = (c) => {
  const code = c.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

// visible is foreign text for one line.
export function visible(text) {
  return String(text).replace(unsafe, (c) => ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c] ?? written(c));
}

// visibleLines is visible that keeps line breaks and tabs.
export function visibleLines(text) {
  return String(text).replace(unsafe, (c) => (c === "\n" || c === "\t" ? c : written(c)));
}

// shorten cuts a text to so many characters, and never in the middle of one.
export function shorten(text, most) {
  if (text.length <= most) return text;
  const cut = text.slice(0, most - 1);
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}
