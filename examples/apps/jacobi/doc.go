// Package jacobi implements the 2-D Jacobi iteration: each inner cell of a square grid repeatedly becomes the
// mean of its four neighbours, while the border does not change. Rank 0 has the grid. The other ranks are
// workers; in every iteration, each of them computes a block of lines.
//
// The messages are the same as in upstream's example jacobi2d.cpp. A host built from that example can therefore
// use ranks that run Work as workers, and Host can use FPGAs built from it. docs/examples.md lists the
// messages.
//
// On any rank, a cell is computed from the same four values in the same order, so the result is identical to
// Serial's, to the last bit, even for floats.
//
// The package must never let a message determine how much it allocates: the Options determine all sizes.
package jacobi
