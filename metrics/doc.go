// Package metrics exposes how ranks are doing to Prometheus: their engines'
// counters, read when somebody asks, and histograms of how long the phases of
// messages take.
//
// The packet path must never pay for it: a Recorder is told of every message under
// its engine's lock, and increments plain counters there, without allocating once
// it has seen a duration of about that length from that peer before. Everything else
// is read from the engines at the time of a scrape, which holds an engine's lock for
// one peer at a time. The package has no global state: every daemon has a Registry of
// its own.
//
// How much it exposes, and remembers, is bounded whatever peers do: so many peers of
// a rank have series of their own, the others are one, and labels take values that
// the configuration or the program knows.
package metrics
