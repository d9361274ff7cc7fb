//go:build !race

package mpe_test

const raceEnabled = false
