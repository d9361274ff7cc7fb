// Package perfetto writes the messages and calls of a recording as a trace for ui.perfetto.dev and other readers of Perfetto's
// TrackEvent format.
//
// A rank is a process of the trace. It has a track for the calls of its program, one for what it sends to each other rank, and one for what it
// receives from it;
// messages of a pair, and calls, that overlap have tracks of their own. A message is a slice with its phases inside on the sender's side, and a slice
// from CLEAR_TO_SEND to its end on the receiver's, with an arrow from the one to the other. Counters are the messages and the words
// that a rank has under way, unless the trace is live, and the lengths of its queues, if the recording has them. Findings are instants on a
// track of their own.
//
// Field numbers are those of protos/perfetto/trace in Perfetto's source, of messages that it declares stable for traces of others.
//
// It must never need more memory than the report that it is given, by a constant factor, or, live, than its tracks.
package perfetto
