// Package perfetto writes the messages and calls of a recording as a trace for ui.perfetto.dev and other readers of
// Perfetto's TrackEvent format.
//
// A rank is a process of the trace. It has a track for the calls of its program, and for each other rank a track of
// messages sent and one of messages received. Messages of a pair, and calls, that overlap have separate tracks. A
// message is a slice on the sender's side, with its phases inside, and a slice from CLEAR_TO_SEND to its end on the
// receiver's side, with an arrow from the first to the second. Counters are the messages and words in flight for a
// rank, unless the trace is live, and the lengths of its queues, if the recording has them. Findings are instants on a
// separate track.
//
// Field numbers are from protos/perfetto/trace in Perfetto's source, of messages declared stable for external traces.
//
// It must never need more memory than the report, by a constant factor, or, live, than its tracks.
package perfetto
