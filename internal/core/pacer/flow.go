package pacer

// flow yields the moments of further grants one after the other and charges them to the state.
//
// Two conditions make a rule strict. The generic cell rate (GCRA) spaces dispatches: with a theoretical arrival time
// TAT, a dispatch at t conforms if t >= TAT - (burst-1) intervals, and moves TAT to max(t, TAT) + interval. With
// burst 1 that alone keeps rate dispatches a window apart. With a burst, a full burst plus its refill would fit one
// window, so the log decides as well: the dispatch that came rate before must be a window old.
type flow struct {
	s     *State
	own   []int
	rules []rated
	next  int64
	every int64 // at least so far apart; 0: as the rules say
	log   bool  // some rule needs the log
}

// rated is a rule of the state with its derived numbers at hand.
type rated struct {
	interval, tolerance, window int64
	log                         bool
	back                        cursor // at the grant that came rate before the next one
}

func (s *State) flow(start, every int64, own []int) *flow {
	f := &flow{s: s, own: own, every: every, rules: make([]rated, len(s.Rules)), next: max(start, s.Last, s.Hold)}
	for i, st := range s.Rules {
		r := st.rule()
		f.rules[i] = rated{interval: r.interval(), window: r.window(), log: r.Burst > 1}
		f.rules[i].tolerance = int64(r.Burst-1) * f.rules[i].interval
		f.log = f.log || r.Burst > 1
		if r.Burst > 1 {
			f.rules[i].back = s.Log.behind(int64(r.Rate))
		}
	}
	f.wait()
	return f
}

// wait moves next to where all own rules allow it.
func (f *flow) wait() {
	if f.every > 0 {
		f.next = max(f.next, f.s.Last+f.every)
	}
	for _, i := range f.own {
		r := &f.rules[i]
		f.next = max(f.next, f.s.Rules[i].TAT-r.tolerance)
		if !r.log {
			continue
		}
		if t, ok := f.s.Log.at(&r.back); ok {
			f.next = max(f.next, t+r.window)
		}
	}
}

// take charges a grant at next to all rules, also those of others, and moves on.
func (f *flow) take() {
	f.s.Last = f.next
	for i := range f.rules {
		f.s.Rules[i].TAT = max(f.s.Rules[i].TAT, f.next) + f.rules[i].interval
		if f.rules[i].log {
			f.rules[i].back.advance()
		}
	}
	if f.log {
		f.s.Log = f.s.Log.add(f.next)
	}
	f.wait()
}
