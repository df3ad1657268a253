// Asking again and again, and not more often than there is something to see.

const hiddenEvery = 60_000; // while nobody looks: the title still tells how far it is
const calmer = 1.5; // each answer that brought nothing new makes the next wait so much longer
const retryFirst = 1_000;
const retryMost = 30_000;

// Poller loads something and shows it, until it is stopped. `view` has load(signal) that resolves to {value, text},
// show(value), and pace(value), which names the shortest and the longest wait in milliseconds. `report` is told what
// went wrong, and null once it works.
export class Poller {
  constructor(view, report) {
    this.view = view;
    this.report = report;
    this.failures = 0;
    this.wait = 0;
    this.last = null;
    this.onVisible = () => document.visibilityState === "visible" && this.refresh();
    this.onOnline = () => this.refresh();
    document.addEventListener("visibilitychange", this.onVisible);
    addEventListener("online", this.onOnline);
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    document.removeEventListener("visibilitychange", this.onVisible);
    removeEventListener("online", this.onOnline);
  }

  // refresh asks now, in place of a request that is under way: that one may be from before what the caller did.
  async refresh() {
    if (this.stopped) return;
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    let wait;
    try {
      const answer = await this.view.load(abort.signal);
      if (abort.signal.aborted) return;
      wait = this.succeeded(answer);
    } catch (error) {
      if (abort.signal.aborted) return;
      wait = this.failed(error);
    }
    if (wait !== null) this.timer = setTimeout(() => this.refresh(), wait);
  }

  succeeded({ value, text }) {
    const [least, most] = this.view.pace(value);
    this.wait = text === this.last ? Math.min(this.wait * calmer, most) : least;
    this.wait = Math.max(this.wait, least);
    this.last = text;
    this.failures = 0;
    this.view.show(value);
    this.report(null);
    return document.visibilityState === "hidden" ? Math.max(this.wait, hiddenEvery) : this.wait;
  }

  // failed returns when to try again; null: a person has to do something first.
  failed(error) {
    this.failures++;
    const wait = Math.min(retryFirst * 2 ** (this.failures - 1), retryMost) * (0.75 + Math.random() / 2);
    const again = error.kind === "away";
    this.report(error, again ? Date.now() + wait : null);
    if (again) return wait;
    return error.kind === "refused" ? retryMost : null;
  }
}
