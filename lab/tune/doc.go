// Package tune finds the fastest algorithm for each collective call on this machine, and makes a table for
// mpe/coll/choice. It measures every algorithm, segment size, length and number of ranks over the transports of both
// classes. It does so in several rounds, and uses the medians.
//
// Each rank is a process that runs the same program again. A program that uses this package must pass the arguments
// after RankCommand to RunRank. Ranks read jobs from standard input in sequence, and answer on standard output. The
// first call of every job is verified.
//
// The package makes a table, but never changes the table that zrlmpid uses. The configuration selects that table.
//
// Files: options.go has the options, plan.go the list of measurements, tune.go the rounds, link.go the time of a
// message, cluster.go the processes, rank.go and work.go the ranks, table.go the table that is made from the
// measurements, and print.go the tables for readers.
package tune
