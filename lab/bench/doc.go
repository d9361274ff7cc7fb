// Package bench measures zrlmpid beside what the machine allows and beside the MPI
// libraries that are installed on it, in one run: rounds of all sides in turn, of
// which it reports medians, ratios, what cost grows by, and how far the aims are.
//
// It runs zrlmpid's ranks in processes of their own, which are the running program
// again: a program that uses the package gives the arguments after RankCommand to
// RunRank. It compiles the peers' programs, and those of the raw limits, from its
// folder c. Every message is verified.
//
// It must never judge the code: no test fails because of a figure.
package bench
