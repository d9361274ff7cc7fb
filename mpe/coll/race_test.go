//go:build race

package coll_test

// raceEnabled: the race detector makes proofs many times slower.
const raceEnabled = true
