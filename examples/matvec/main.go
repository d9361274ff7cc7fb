// Command matvec multiplies matrices by vectors with growing numbers of processors: rank
// 0 deals the rows out to all ranks, and gathers the result. Kernel matvec of a stand-in
// takes rows, too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "matvec",
	Summary: "matrix times vector, row by row, by 1, 2, 4, 6, 8 processors: times, speed-ups, efficiencies",
	Ranks:   8,
}

func main() { demo.Main(info, newProgram()) }
