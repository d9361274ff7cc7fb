// Package tune finds out which algorithm is the fastest for a collective call on this
// machine, and makes the table of mpe/coll/choice of it: every algorithm, segment,
// length and number of ranks, over the transports of both classes, in rounds, of which
// it takes medians.
//
// Its ranks are processes of their own, which are the running program again: a program
// that uses the package gives the arguments after RankCommand to RunRank. Ranks are told
// what to do on their standard input, one job after another, and answer on their standard
// output; the first call of every job is verified.
//
// It must never change what zrlmpid goes by: it makes a table, and whoever wants it
// configures it.
//
// The files: options.go is what to measure, plan.go the list of it, tune.go the rounds,
// link.go the time of a message, cluster.go the processes, rank.go and work.go what they
// do, print.go the tables for people.
package tune
