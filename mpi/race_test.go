//go:build race

package mpi

// raceEnabled: it takes memory of its own, and pools forget at random.
const raceEnabled = true
