// Package edge is where a function meets its platform: configuration from the environment (this is the only place that
// reads it), structured logs, deadlines, requests that are read strictly, and the few named errors by which a state
// machine tells what to do. It owns no behaviour of a run.
package edge
