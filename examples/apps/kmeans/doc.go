// Package kmeans divides vectors into clusters: each vector belongs to the
// cluster whose centroid is nearest, and each centroid moves to the mean of its
// vectors, until they move no more. Every rank has a share of the vectors; rank 0
// has all of them at first, and computes the means.
//
// The messages are those that upstream's compiler makes of its example kmeans.cpp,
// without optimisation of communication (com_opt: 0) or with it, so that a host built
// from it finds workers in ranks that run Work. docs/examples.md lists them.
//
// All is computed with whole numbers, so that the result does not depend on the
// number of ranks.
//
// The package must never allocate by what a message says: Options.Words is the
// longest that it takes.
package kmeans
