// Package laptop is the acceptance suite of Sluice on one machine: the built programs, sluice and providersim, over
// real sockets and a real disk, in real time. It owns what only the whole can show: the demo's table, kills, limits as
// the provider sees them, outages, memory. It refuses to look inside: what the engine does is judged by its output
// and by the simulator's own report.
//
//	go test ./e2e/laptop
//
// takes about two minutes, most of it waiting. Longer variants:
//
//	SLUICE_E2E_OUTAGE=3m     length of the announced outage (default 20s)
//	SLUICE_E2E_KILLS=100     kills in each of the kill tests (default 25)
//	SLUICE_E2E_SEED=42       moments of the kills as in an earlier run, which printed its seed
//
// Some assertions cannot hold on a machine that stands still: a limit's slack is for the jitter of a network, not for
// a process that is not scheduled. TestMain measures such stalls all the time (weather_test.go), and a test that would
// fail for want of the processor says so instead.
package laptop
