// Package statuspage serves a live page of the state of a daemon: which rank waits for which packet of which
// rank, and for how long; problems; ranks and peers.
//
// The page is for people who debug a hang. It works without JavaScript, and is live with the embedded script.
// It loads nothing from other hosts, and no text of a status becomes markup. It must never change the daemon's
// behavior, query it more often than about once a second for all clients together, or grow with the cluster:
// lists are bounded, omitted items are counted, and clients receive only changes.
package statuspage
