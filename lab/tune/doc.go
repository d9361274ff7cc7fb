// Package tune measures which algorithm is the fastest for a collective call on this
// machine, and makes a table for mpe/coll/choice: every algorithm, segment,
// length and number of ranks, over the transports of both classes, in rounds, of which
// it takes medians.
//
// Its ranks are processes of their own, which are the running program again: a program
// that uses the package passes the arguments after RankCommand to RunRank. Ranks read jobs
// from their standard input, one after another, and answer on their standard output; the
// first call of every job is verified.
//
// It makes a table, and must never change which table zrlmpid uses: the configuration does.
//
// The files: options.go is what to measure, plan.go the list of it, tune.go the rounds,
// link.go the time of a message, cluster.go the processes, rank.go and work.go what they
// do, print.go the tables for people.
package tune
