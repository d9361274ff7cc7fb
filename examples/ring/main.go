// Command ring passes a message round: from rank 0 to rank 1, from each rank to the
// next, and from the last back to rank 0. Kernel ring of a stand-in passes it on,
// too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "ring",
	Summary: "a message goes from rank to rank, and back to rank 0",
	Ranks:   4,
}

func main() { demo.Main(info, newRing()) }
