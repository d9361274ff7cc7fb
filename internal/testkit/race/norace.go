//go:build !race

// Package race says whether tests run with the race detector: it makes them many times slower, takes
// memory of its own, and has pools forget at random.
package race

// Enabled says that the race detector is on.
const Enabled = false
