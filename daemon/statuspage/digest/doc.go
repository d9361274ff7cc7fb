// Package digest computes from a daemon's status why messages do not complete: which rank waits for which
// packet of which rank, and for how long; cycles of waits; problems; and the state of ranks and peers. The
// status page, `zrlctl status` and `zrlctl top` render it.
//
// It must never query a daemon, keep state between two calls, or copy a status.
package digest
