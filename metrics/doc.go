// Package metrics exposes the state of ranks to Prometheus: the counters of their engines, and histograms of
// message phases.
//
// Metrics must cost the packet path almost nothing. For each message, a Recorder increments plain counters
// under the lock of its engine; it allocates only when a peer's first duration in a range of powers of two
// arrives. All other values are read from the engines at the time of a scrape, which holds the lock of an
// engine for one peer at a time. The package has no global state: each daemon has its own Registry.
//
// The number of series is bounded. For each rank, a limited number of peers have separate series, and all other
// peers share one. Label values come from the configuration or the program, never from peers.
package metrics
