// Package digest puts a daemon's status in the order in which somebody reads it who
// looks for why nothing moves: who waits for what from whom and for how long, which
// ranks wait for each other, what is broken, and then how ranks and peers are doing.
// The status page and `zrlctl top` show it.
//
// It must never ask a daemon anything, keep anything between two calls, or be longer
// than the status that it is made of.
package digest
