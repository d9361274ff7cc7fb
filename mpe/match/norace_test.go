//go:build !race

package match

const differentialSteps = 10_000_000
