// Package collcheck proves schedules of package coll without running them: that all ranks terminate, that no two
// steps that may be in progress together access the same bytes unless both read, and that every byte of every result
// has exactly the required contributions, each once, in the order of ranks if that matters. It counts messages, bytes
// and the longest path.
//
// It tracks the content of each byte as a set of contributions, and never uses data; Execute runs the same schedules
// on data, for comparison. The package must never be part of a call: it keeps the whole schedules of all ranks, and
// is for tests and tools.
//
// # Proof
//
// A schedule may be executed in many ways. The checker simulates the most restricted one: a rank sends one message at
// a time and receives one at a time, both in the order of steps, a send waits for its receive, and only
// Schedule.Window steps from the oldest incomplete one on are considered. Every executor must allow this much, and
// allowing more is harmless: a step that could begin still can when other steps have begun, and the messages of a
// pair match in the order of steps, whatever the timing. So if this execution terminates, all executions do.
//
// With a window of 1, this is a rank that executes one blocking step at a time, like the ranks of upstream's
// compiler.
//
// Schedules on shared buffers are different: each rank executes its steps in order, and only StepAwait waits for
// another rank. The effect of such a schedule is independent of timing if every read of a rank's shared buffer is
// ordered with the rank's writes by publications: see sharers.
//
// The second property makes results independent of the order of steps in progress: of two steps of a rank that access
// the same bytes, at least one of them writing, one waits for the other by its dependencies alone.
package collcheck
