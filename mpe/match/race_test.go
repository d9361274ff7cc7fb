//go:build race

package match

const differentialSteps = 1_000_000
