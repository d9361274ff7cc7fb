// Package bench compares zrlmpid with the limits of the machine and with the MPI libraries installed on it, in a single
// run: each round measures all sides in turn. It reports medians, ratios and growth.
//
// Each rank of zrlmpid is a separate process running the same program. A program that uses this package must therefore
// pass the arguments that follow RankCommand to RunRank. The programs for the other libraries and for the raw limits
// are compiled from the folder c. Every message is verified.
//
// A run that misses a target of the project is a result, not an error: no test fails because of a figure.
package bench
