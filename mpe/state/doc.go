// Package state defines the state of ranks for tools: the activity of a rank, its peers, its operations and
// its kernel, as reported in JSON by a daemon, a job or a rank.
//
// It must never depend on how a state is gathered, or hold a lock or a socket.
package state
