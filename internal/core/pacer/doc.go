// Package pacer owns the shared state of a rate scope: who may dispatch when, over all processes that share a table.
// The promise of a rule {rate, per} is that at most rate dispatches fall into any window of length per. The decision
// (decide.go) is pure; keeping it (scope.go) is a loop around compare-and-swap on one item per scope. The package
// refuses to wait: it hands out permits with their moments, or a denial with the moment to ask again.
//
// # The arithmetic of strictness
//
// Each window is enlarged by a slack. A permit may be used late by at most its validity, half the slack; so two
// dispatches can come closer to each other than their permits by half the slack at most, and the other half is left
// for jitter between here and the provider. Clocks of different hosts count as such jitter: hosts need ordinary time
// synchronisation.
package pacer
