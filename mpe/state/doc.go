// Package state has the state of ranks as tools see it: what a rank, its peers, its operations and its kernel are doing,
// in the form that a daemon, a job and a rank answer with, as JSON.
//
// It must never know how a state is gathered, or hold a lock or a socket.
package state
