// Package statuspage serves a live page that shows the state of a daemon: which rank has been waiting for which
// packet from which rank, and for how long; problems; ranks and peers.
//
// The page is for people who debug a hang. It works without JavaScript; the embedded script keeps it up to
// date. It loads nothing from other hosts, and text from a status never becomes markup. The page must never
// change the daemon's behavior, query the daemon more than about once a second for all clients together, or
// grow with the cluster: lists have a maximum length, items beyond it are only counted, and clients receive
// only changes.
package statuspage
