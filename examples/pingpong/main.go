// Command pingpong measures round trips: rank 0 sends messages to each other rank,
// which sends them back. Kernel echo of a stand-in does so, too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "pingpong",
	Summary: "rank 0 sends messages to each other rank, which sends them back",
	Ranks:   2,
}

func main() { demo.Main(info, newPingpong()) }
