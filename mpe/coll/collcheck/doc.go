// Package collcheck proves schedules of package coll without running them: that all ranks terminate, that no two
// steps that may be in progress together access the same bytes unless both read, and that every byte of every result
// has exactly the required contributions, each once, in the order of ranks if that matters. It counts messages, bytes
// and the longest path.
//
// It represents the content of each byte as a set of contributions instead of data; Execute runs the same schedules on
// data, for comparison. The package is for tests and tools. It must never be part of a call, because it stores the
// complete schedules of all ranks.
//
// # Proof
//
// A schedule can be executed in many ways. The checker simulates the most restricted execution: a rank sends one
// message at a time and receives one at a time, both in the order of steps, a send waits for its receive, and only
// Schedule.Window steps are considered, beginning with the oldest incomplete step. Every executor must permit this
// much, and permitting more is harmless: a step that can begin still can after other steps have begun, and the messages
// of a pair match in the order of steps, whatever the timing. Therefore, if this execution terminates, all executions
// do.
//
// With a window of 1, the simulated rank executes one blocking step at a time, like the ranks of upstream's compiler.
//
// Schedules on shared buffers are different: each rank executes its steps in order, and only StepAwait waits for
// another rank. The effect of such a schedule is independent of timing if publications order every read of a rank's
// shared buffer with respect to the rank's writes; see sharedSimulation.
//
// The second property makes results independent of the order of steps in progress: if two steps of a rank access the
// same bytes, and at least one of them writes, the dependencies make one wait for the other.
package collcheck
