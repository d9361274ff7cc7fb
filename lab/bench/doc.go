// Package bench measures zrlmpid beside the limits of the machine and the MPI libraries
// that are installed on it, in one run: rounds of all sides in turn. It reports medians,
// ratios and growth.
//
// Each rank of zrlmpid is a process of its own, which runs the same program: a program that
// uses the package passes the arguments after RankCommand to RunRank. The package compiles
// the programs of the other libraries and of the raw limits from its folder c. Every
// message is verified.
//
// No test fails because of a figure: a run that misses a target of the project is a result,
// not an error.
package bench
