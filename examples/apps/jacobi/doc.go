// Package jacobi is the 2-D Jacobi iteration: each inner cell of a square grid repeatedly becomes the mean of its four
// neighbours, while the border does not change. Rank 0 has the grid. The other ranks are workers, each of which
// computes a block of lines in every iteration.
//
// The messages are the same as in upstream's example jacobi2d.cpp. So a host built from it can use ranks that run Work
// as workers, and Host can use FPGAs built from it. docs/examples.md lists the messages.
//
// Each cell is computed from the same four values in the same order on any rank, so the result is identical to
// Serial's, to the last bit, even for floats.
//
// The package must never let a message determine how much it allocates: all sizes are Options.
package jacobi
