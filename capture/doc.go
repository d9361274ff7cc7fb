// Package capture reads recorded and live packets and reports what ZRLMPI did in
// them: which message each packet belongs to, how long each phase of its
// handshake took, what went wrong, and which rank waits for whom at the end.
//
// It is layers, each a stream: a Source gives the UDP datagrams and TCP stream
// pieces of a file or an interface (Unit), a Tracker follows every pair with the
// state machine that drives live ranks and says of each unit what it is
// (Event), and an Analysis makes messages and findings of the events.
//
// It must never hold more than it needs to go on: a file of any size is read in
// constant memory. It must never trust a length in a file, and never panic or
// hang over one.
package capture
