//go:build race

package attach

// raceEnabled: it takes memory of its own, and pools forget at random.
const raceEnabled = true
