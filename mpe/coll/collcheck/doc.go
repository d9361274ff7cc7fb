// Package collcheck proves schedules of package coll without running them: that all ranks
// come to their end, that no two steps that may be under way together touch the same
// bytes, and that every byte of every result has exactly the contributions that it
// must have, each once, in the order of ranks where that matters. It counts messages,
// bytes and the longest path.
//
// It follows what each byte is made of, as sets of contributions, and never looks at
// data; Execute runs the same schedules on data, for comparison. It must never be part
// of a call: it keeps whole schedules of all ranks, and is for tests and tools.
//
// # What is proved
//
// A schedule may be carried out in many ways. The checker follows the one that allows
// least: a rank sends one message at a time and receives one at a time, both in the
// order of steps, a send waits for its receive, and of the steps from the oldest that
// is not complete only Schedule.Window are considered. No executor may do less than
// that, and to do more cannot do harm: a step that could begin still can when others
// have begun, and messages of a pair meet in the order of steps whatever the time.
// So if this one comes to its end, all do.
//
// With a window of 1 this is a rank that does one thing at a time and blocks, as those
// of upstream's compiler do.
//
// Schedules that use shared buffers are of another kind: each rank does one step after the
// other, and no step but StepAwait waits for another rank. What such a schedule does depends on no
// timing, if every read of a rank's shared buffer is ordered with the rank's writes by publications: see
// sharers.
//
// That results do not depend on the order of what is under way follows from the second
// property: of two steps of a rank that touch the same bytes, one of them writing, one
// waits for the other, by its dependencies alone.
package collcheck
