// Package capture reads recorded and live packets and reports their ZRLMPI activity: the message of each packet, the
// duration of each handshake phase, errors, and the ranks still waiting at the end.
//
// It consists of three layers, each of which processes a stream. A Source yields the UDP datagrams and pieces of TCP
// streams of a file or an interface (Unit). A Tracker follows every pair of ranks with the state machine that drives
// live ranks, and classifies each unit (Event). An Analysis derives messages and findings from the events.
//
// A file of any size is read in constant memory. The package never trusts a length in a file, and never panics or hangs
// because of one.
package capture
