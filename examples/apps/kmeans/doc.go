// Package kmeans divides vectors into clusters: each vector belongs to the cluster with the nearest centroid,
// and each centroid repeatedly moves to the mean of its vectors, until all of them stop moving. Every rank has
// a share of the vectors. Rank 0 initially has all of them, and computes the means.
//
// The messages are the same as in the code that upstream's compiler generates for its example kmeans.cpp, with
// or without optimization of communication (com_opt). A host built from that example can therefore use ranks
// that run Work as workers. docs/examples.md lists the messages.
//
// All computations use integers, so the result does not depend on the number of ranks.
//
// The package must never let a message determine how much it allocates: Options.Words is the length of the
// longest message that it accepts.
package kmeans
