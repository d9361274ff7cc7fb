// Command jacobi computes the Jacobi iteration of a square grid: rank 0 has the
// grid, and all others compute blocks of lines. Kernel jacobi of a stand-in does
// so, too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "jacobi",
	Summary: "cells of a grid become the mean of their neighbours, by blocks of lines",
	Ranks:   5,
}

func main() { demo.Main(info, new(program)) }
