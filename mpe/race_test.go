//go:build race

package mpe_test

// raceEnabled: the race detector makes whole engines many times slower.
const raceEnabled = true
