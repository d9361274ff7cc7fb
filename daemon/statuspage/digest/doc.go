// Package digest turns a daemon's status into what a reader needs to find out why
// messages do not complete: which ranks wait for what from which rank and for how long,
// cycles of waits, problems, and then the state of ranks and peers. The status page,
// `zrlctl status` and `zrlctl top` render it.
//
// It must never query a daemon, keep state between two calls, or copy a status.
package digest
