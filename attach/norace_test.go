//go:build !race

package attach

const raceEnabled = false
