// Package digest determines from a daemon's status why messages do not complete: which rank has been waiting
// for which packet from which rank, and for how long. It also finds cycles of waits, problems, and the state of
// ranks and peers. The status page, `zrlctl status` and `zrlctl top` display the results.
//
// The package must never query a daemon, keep state between two calls, or copy a status.
package digest
