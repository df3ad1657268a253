// Package serve is the whole system in one process: the HTTP API over a state folder, and the driver that works on the runs
// that it starts, several at once. It owns who may ask (keys, hosts, origins, links) and which runs this process works on; what
// a request means is internal/api's, and how a run is worked internal/local's.
package serve
