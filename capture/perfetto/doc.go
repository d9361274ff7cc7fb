// Package perfetto writes the messages and calls of a recording as a trace for ui.perfetto.dev and other readers of
// Perfetto's TrackEvent format.
//
// Each rank is a process of the trace. The process contains a track for the calls of the rank's program and, for each
// other rank, a track for messages sent and a track for messages received. Calls or messages that overlap are on
// separate tracks. On the sender's side, a message is a slice that contains its phases. On the receiver's side, it is a
// slice from CLEAR_TO_SEND to its end. An arrow leads from the first slice to the second. Counters show the lengths of
// a rank's queues, if the recording contains them, and, except in a live trace, its messages and words in flight.
// Findings are instants on a separate track.
//
// Field numbers are from protos/perfetto/trace in Perfetto's source. All messages used are declared stable for external
// traces.
//
// Memory must be at most proportional to the size of the report or, for a live trace, to the number of tracks.
package perfetto
