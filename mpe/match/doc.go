// Package match implements the message matching of one communicator: the queue of posted receives (PRQ) and
// the queue of unexpected messages (UMQ), keyed by source and tag, with MPI's wildcards and MPI's order.
//
// It is pure code. It must never lock, start a goroutine, read a clock, use a socket, log, or depend on the order of a
// Go map: the same calls give the same results. It never reads the receives and messages that it stores, and does not
// retain them after their removal. A Matcher is not safe for concurrent use.
//
// # Tables and order
//
// One hash table finds all entries of a queue. Each bucket compares five tags at once, as an associative memory does. A
// list links the entries of a queue in the order of their numbers, which increase with time. Entries with equal keys
// form a FIFO in the same order.
//
// The same table stores posted receives with wildcards, under the keys (source,*), (*,tag) and (*,*). Two more tables,
// the indexes, find unexpected messages by source alone or by tag alone. A Matcher builds each index at most once, when
// a receive or probe first needs it while messages are queued, in time linear in their number. From then on, each
// queued message takes one more table entry.
//
//  1. A message matches exactly the receives with the four keys (source,tag),
//     (source,*), (*,tag), (*,*), so the lowest-numbered of the four heads is
//     the oldest matching receive.
//  2. A receive matches exactly the messages in one FIFO of one of the four
//     indexes of the UMQ, so the head of this FIFO is the oldest matching message.
//
// A message that matches a posted receive is never queued, and neither is a receive that matches a queued message.
// Therefore the oldest pair always matches, and messages of one source do not overtake each other.
//
// # Cost
//
// Every operation takes constant expected time at any depth and for any mix of wildcards, except the construction of an
// index, Restore, Repost, DeleteUnexpected and the Each methods. In deeper queues, more operations miss the processor's
// caches: a match accesses one bucket, the entry and its two neighbours in the order, and the stored receive or
// message. An operation allocates only if its queue is deeper than ever before or holds more different keys, and then
// by the page. Tables grow by one bucket at a time, so no operation pays for a rehash. Limits bounds the memory: with
// pointers for R and M, about 30 kB initially, at most 68 bytes per entry of the greatest depth of a queue, and 32 more
// for each wildcard index in use. A Matcher keeps its memory for the next burst, until it is released itself.
//
// The hash uses no secret, because a program that chooses colliding tags slows down only itself.
package match
