//go:build !race

// Package race reports whether tests run with the race detector. The detector makes them many times slower, uses
// additional memory, and makes pools drop items at random.
package race

// Enabled reports whether the race detector is on.
const Enabled = false
