// Package statuspage serves a live page of the state of a daemon: which ranks wait for
// what from which rank and for how long, problems, ranks and peers.
//
// The page is for people who debug a hang. It works without a script, and is live with
// the embedded one. It loads nothing from other hosts, and no text of a status becomes
// markup. It must never change what the daemon does, query it more often than about once
// a second for all clients together, or grow with the cluster: lists are bounded, the
// rest is counted, and clients receive only what has changed.
package statuspage
