// Package metrics exposes the state of ranks to Prometheus: the counters of their engines, and histograms of
// the phases of messages.
//
// It must cost the packet path almost nothing: a Recorder increments plain counters for every message under its
// engine's lock, and allocates only for a peer's first duration in a range of powers of two. All other values
// are read from the engines at the time of a scrape, which holds an engine's lock for one peer at a time. The
// package has no global state: every daemon has a separate Registry.
//
// The number of series is bounded: a limited number of peers of a rank have separate series, all others share
// one, and label values come from the configuration or the program, not from peers.
package metrics
