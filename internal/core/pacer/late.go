package pacer

// delay counts all that was granted as granted d nanoseconds later, under the rules whose slack does not cover that:
// those calls may have reached the provider so much later than their permits said. It reports whether anything changed.
func (s *State) delay(d int64) (changed bool) {
	logged := false
	for i := range s.Rules {
		r := s.Rules[i].rule()
		if d <= int64(r.slack())/2 {
			continue
		}
		s.Rules[i].TAT += d
		changed = true
		logged = logged || r.Burst > 1
	}
	if logged {
		for i := range s.Log {
			s.Log[i].start += d
		}
	}
	if changed {
		s.Last += d
	}
	return changed
}
