// Command backsub solves linear equations of an upper triangle with growing numbers of
// processors: rank 0 deals the rows out to all ranks, each of which computes unknowns and
// sends them to all others. Kernel backsub of a stand-in takes rows, too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "backsub",
	Summary: "back substitution, rows dealt cyclically, by 1, 2, 4, 6, 8 processors: times, speed-ups, efficiencies",
	Ranks:   8,
}

func main() { demo.Main(info, newProgram()) }
