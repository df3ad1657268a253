package resolver

import "testing"

// Every operation of every sequence has a position of its own, and can be told from it.
func TestR12PositionsAreUnique(t *testing.T) {
	seen := map[int][]step{}
	note := func(s sequence, operation int) {
		at := s.at(operation)
		if at < 0 || seen[at] != nil {
			t.Fatalf("%+v, operation %d has position %d, as has %+v", s, operation, at, seen[at])
		}
		got := levels(at)
		if last := got[len(got)-1]; last.in != s || last.operation != operation || len(got) != s.depth+1 {
			t.Fatalf("%+v, operation %d: %+v", s, operation, got)
		}
		seen[at] = got
		if operation < MaxOperations && Next(at) != s.at(operation+1) {
			t.Fatalf("after %d comes %d", at, Next(at))
		}
	}
	some := []int{0, 1, 2, 17, MaxOperations - 1, MaxOperations}
	branches := []int{0, 1, 99, MaxBranches - 1}
	main := sequence{}
	for _, o := range some {
		note(main, o)
		for _, b := range branches {
			one := main.branch(o, b)
			for _, o := range some {
				note(one, o)
				for _, b := range branches {
					two := one.branch(o, b)
					for _, o := range some {
						note(two, o)
					}
				}
			}
		}
	}
	if main.at(0) != 0 || main.at(5) != 5 {
		t.Error("the main sequence does not count from 0")
	}
}
