package main

import "math/rand/v2"

// The coordinates of vectors: heaps of this width, within this distance of 0. Sums
// of a million of them fit into 32 bits.
const (
	space = 1000
	width = 100
)

// makeVectors returns vectors in as many heaps as there are clusters. The same seed
// gives the same vectors everywhere.
func makeVectors(vectors, dimensions, clusters int, seed uint64) []int32 {
	random := rand.New(rand.NewPCG(seed, 0))
	heaps := make([]int32, clusters*dimensions)
	for i := range heaps {
		heaps[i] = random.Int32N(2*space+1) - space
	}
	all := make([]int32, vectors*dimensions)
	for i := range vectors {
		heap := heaps[random.IntN(clusters)*dimensions:]
		for j := range dimensions {
			all[i*dimensions+j] = heap[j] + random.Int32N(2*width+1) - width
		}
	}
	return all
}
