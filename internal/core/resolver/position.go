package resolver

// A position is where an operation stands in a resolver: a number that is the same whenever the resolver is run. It is
// made of levels: the how-manieth operation of the main sequence; within a Parallel, which branch of it, and the
// how-manieth operation of that; and so on. Branches so never take each other's positions, whoever comes first (R12).
//
//	bits   0-11   operation of the main sequence
//	      12-21   branch of the Parallel that stands there, from 1; 0: the position is of the main sequence
//	      22-33   operation of that branch
//	      34-43   branch of a Parallel in it
//	      44-55   operation of that branch
const (
	operationBits = 12
	branchBits    = 10
	levelBits     = operationBits + branchBits

	// MaxOperations is how many operations a sequence may have, MaxBranches how many branches a Parallel, and MaxDepth how
	// deep Parallels may stand in each other.
	MaxOperations = 1<<operationBits - 1
	MaxBranches   = 1<<branchBits - 1
	MaxDepth      = 2
)

// sequence is a place where operations follow each other.
type sequence struct {
	prefix int // the bits of the levels above
	depth  int
}

// at is the position of an operation of the sequence.
func (s sequence) at(operation int) int { return s.prefix | operation<<(s.depth*levelBits) }

// branch is the sequence of a branch of the Parallel that stands at an operation.
func (s sequence) branch(operation, number int) sequence {
	return sequence{prefix: s.at(operation) | (number+1)<<(s.depth*levelBits+operationBits), depth: s.depth + 1}
}

// step is one level of a position.
type step struct {
	in        sequence
	operation int
}

// levels takes a position apart, from the main sequence downwards.
func levels(position int) []step {
	var list []step
	s := sequence{}
	for {
		operation := position >> (s.depth * levelBits) & MaxOperations
		list = append(list, step{s, operation})
		number := position >> (s.depth*levelBits + operationBits) & MaxBranches
		if number == 0 || s.depth == MaxDepth {
			return list
		}
		s = s.branch(operation, number-1)
	}
}

// Next is the position that follows one in its sequence.
func Next(position int) int {
	list := levels(position)
	last := list[len(list)-1]
	return last.in.at(last.operation + 1)
}
