// Package bench compares zrlmpid with the limits of the machine and with the MPI libraries installed on it, in one run:
// each round measures all sides in turn. It reports medians, ratios and growth.
//
// Each rank of zrlmpid is a process, which runs the same program: a program that uses the package passes the arguments
// after RankCommand to RunRank. The package compiles the programs for the other libraries and for the raw limits from
// its folder c. Every message is verified.
//
// No test fails because of a figure: a run that misses a target of the project is a result,
// not an error.
package bench
