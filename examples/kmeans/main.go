// Command kmeans divides vectors into clusters: every rank has a share of the
// vectors, and rank 0 the centroids. Kernel kmeans of a stand-in takes a share, too.
package main

import "github.com/zrlmpi/zrlmpid/examples/internal/demo"

var info = demo.Info{
	Name:    "kmeans",
	Summary: "vectors are divided into clusters, with a share of them on every rank",
	Ranks:   5,
}

func main() { demo.Main(info, new(program)) }
