// Package match is the message matching of one communicator: the queue of
// posted receives (PRQ) and the queue of unexpected messages (UMQ), keyed by
// source and tag, with MPI's wildcards and MPI's order.
//
// It is pure code. It must never lock, start a goroutine, read a clock, touch a
// socket, log, or depend on the order of a Go map: the same calls give the same
// results. It never looks into the receives and messages it keeps, and keeps
// none that has left. A Matcher is not safe for concurrent use.
//
// # Two levels
//
// The queues follow "two-level message queues" by Xiong, Skjellum and Herbordt
// (Accelerating MPI Message Matching Through FPGA Offload, FPL 2018): the 256
// oldest entries of a queue are its first level, an associative memory in the
// paper, here a table of 4 kB that stays in the processor's first cache and
// compares five tags at once.
// The rest is the second level, a linked list in the paper and here a hash
// table that grows. When an entry leaves the first level, the oldest of the
// second takes its place. Entries do not move in memory for that; only the
// table that finds them changes.
//
// The paper leaves wildcards out. Here a posted receive with a wildcard counts
// as an entry of its level, but is found through the table of the second level
// under its own key (source,*), (*,tag) or (*,*), wherever it is in the order.
// Unexpected messages are found by source alone or by tag alone through two
// more tables. Each is built when a receive or probe first asks that way while
// messages are queued, in time linear in their number, once in the life of the
// Matcher; from then on each queued message costs one more table entry.
//
// # Order
//
// Each entry of a queue has a number, and numbers grow with time. Entries with
// equal keys form a FIFO in the order of their numbers, one in each level. Let
// b be the number of the oldest entry of the second level. Then
//
//  1. every entry of the first level has a number below b, because an entry
//     goes to the second level only when the first is full of older ones, only
//     the oldest goes back, and a message restored into a full first level
//     pushes the youngest there down;
//  2. so the FIFO of a key in the first level is older than its FIFO in the
//     second, and its head is the oldest entry of that key: a hit in the first
//     level is final;
//  3. a message fits exactly the receives with the four keys (source,tag),
//     (source,*), (*,tag), (*,*), so the lowest-numbered of the four heads is
//     the oldest receive that fits;
//  4. a receive fits exactly the messages in one FIFO of one of the four
//     indexes of the UMQ, so the head of that is the oldest message that fits.
//
// A message that fits a posted receive never waits and a receive that fits a
// queued message is never queued, so the oldest pair always meets: messages of
// one source do not overtake each other.
//
// # Cost
//
// Every operation takes constant expected time at any depth and for any mix of
// wildcards, except the build of an index told above, Restore, and the Each
// methods. No operation allocates unless its queue is deeper than it ever was,
// and then by the page: tables grow by one bucket at a time, so no operation
// pays for a rehash. Memory is bounded by Limits: with pointers for R and M,
// about 25 kB to begin with, 64 bytes for each entry of the greatest depth a
// queue had, and 48 more for each wildcard index in use. It is kept for the
// next burst, not released, until the Matcher goes.
//
// The hash has no secret: a program that chooses its own tags to collide slows
// down itself.
package match
