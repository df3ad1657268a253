// Package hold owns the arithmetic of waiting: what a provider's headers mean, how long to back off where they say
// nothing, what may be waited out inside an invocation, and when a parked shard wakes. Everything here is pure and
// takes the present as an argument; it refuses to sleep, to store and to log.
package hold
