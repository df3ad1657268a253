// How fast rows end, seen from here: over the last half minute.

const window = 30_000;
const farAway = 100 * 24 * 3600_000; // an estimate past this says nothing

export class Speed {
  constructor() {
    this.forget();
  }

  forget() {
    this.samples = [];
  }

  note(at, ended) {
    this.samples.push({ at, ended });
    while (this.samples.length > 2 && at - this.samples[1].at >= window) this.samples.shift();
  }

  // rate is rows a second; 0: not known, or nothing moves.
  rate() {
    if (this.samples.length < 2) return 0;
    const first = this.samples[0];
    const last = this.samples.at(-1);
    const took = (last.at - first.at) / 1000;
    return took < 1 || last.ended <= first.ended ? 0 : (last.ended - first.ended) / took;
  }

  // left is how many milliseconds so many rows may take, and not less than the least; 0: not known.
  left(rows, least) {
    const rate = this.rate();
    if (rows <= 0 || rate <= 0) return 0;
    const ms = Math.max((rows / rate) * 1000, least, 1000);
    return ms > farAway ? 0 : ms;
  }
}
