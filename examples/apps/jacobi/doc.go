// Package jacobi is the 2-D Jacobi iteration: each inner cell of a square grid
// becomes the mean of its four neighbours, again and again, while the border
// stays. Rank 0 has the grid, and the other ranks are workers that compute one
// iteration of a block of lines each.
//
// The messages are those of upstream's example jacobi2d.cpp, so that a host built
// from it finds workers in ranks that run Work; Host talks to FPGAs that were
// built from it. docs/examples.md lists them.
//
// Each cell is computed from the same four values in the same order wherever it
// is, so the result is that of Serial to the last bit, of floats as well.
//
// The package must never allocate by what a message says: all sizes are Options.
package jacobi
