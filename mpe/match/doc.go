// Package match is the message matching of one communicator: the queue of
// posted receives (PRQ) and the queue of unexpected messages (UMQ), keyed by
// source and tag, with MPI's wildcards and MPI's order.
//
// It is pure code. It must never lock, start a goroutine, read a clock, touch a
// socket, log, or depend on the order of a Go map: the same calls give the same
// results. It never reads the receives and messages it keeps, and keeps
// none that was removed. A Matcher is not safe for concurrent use.
//
// # Tables and order
//
// All entries of a queue are found through one hash table, whose buckets compare
// five tags at once, as an associative memory does. A list links the entries of a
// queue in the order of their numbers, which grow with time. Entries with equal keys
// form a FIFO in the same order.
//
// A posted receive with a wildcard is in the same table under its own key
// (source,*), (*,tag) or (*,*). Unexpected messages are found by source alone or by
// tag alone through two more tables. Each is built when a receive or probe first
// asks that way while messages are queued, in time linear in their number, once in
// the life of the Matcher; from then on each queued message costs one more table
// entry.
//
//  1. A message fits exactly the receives with the four keys (source,tag),
//     (source,*), (*,tag), (*,*), so the lowest-numbered of the four heads is
//     the oldest receive that fits.
//  2. A receive fits exactly the messages in one FIFO of one of the four
//     indexes of the UMQ, so the head of that is the oldest message that fits.
//
// A message that fits a posted receive never waits and a receive that fits a
// queued message is never queued, so the oldest pair always meets: messages of
// one source do not overtake each other.
//
// # Cost
//
// Every operation takes constant expected time at any depth and for any mix of
// wildcards, except the build of an index described above, Restore, and the Each
// methods. What grows with the depth is the memory in use, and with it the
// share of operations that miss the processor's caches: a match touches one
// bucket, the entry and its two neighbours in the order, and what is matched.
// No operation allocates unless its queue is deeper than it ever was or holds
// more different keys, and then by the page: tables grow by one bucket at a
// time, so no operation pays for a rehash. Memory is bounded by Limits: with
// pointers for R and M, about 30 kB to begin with, at most 68 bytes for each
// entry of the greatest depth a queue had, and 32 more for each wildcard index
// in use. It is kept for the next burst, not released, until the Matcher goes.
//
// The hash has no secret: a program that chooses its own tags to collide slows
// down itself.
package match
