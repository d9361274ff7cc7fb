package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Simulation holds the options of the kernels rtl and rtl-net. They are part of the kernel's text form, so that they
// can be specified wherever a kernel can.
type Simulation struct {
	// CyclesPerSecond is the maximum speed of the simulation; 0 means no limit.
	CyclesPerSecond int
	// StallPercent is the percentage of cycles in which the engine stalls the role, for each stream. Random numbers
	// from Seed select these cycles.
	StallPercent, Seed int
	// TimeScale multiplies all timeouts that a slow simulation could exceed. 0 means 1.
	TimeScale int
}

// simulationOption describes an option of Simulation and its maximum value.
type simulationOption struct {
	name     string
	maxValue int
	field    func(*Simulation) *int
}

// simulationOptions lists all options of a simulation. A stall of 100 % would prevent all transfers. The maximum scale
// ensures that the longest timeout, a day, still fits in a time.Duration after multiplication.
var simulationOptions = []simulationOption{
	{"cycles_per_second", math.MaxInt32, func(s *Simulation) *int { return &s.CyclesPerSecond }},
	{"stall_percent", 95, func(s *Simulation) *int { return &s.StallPercent }},
	{"seed", math.MaxInt32, func(s *Simulation) *int { return &s.Seed }},
	{"time_scale", 100_000, func(s *Simulation) *int { return &s.TimeScale }},
}

// parseArgs parses the options before a simulator, and returns its command.
func (s *Simulation) parseArgs(words []string) (command []string, err error) {
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok {
			break
		}
		i := slices.IndexFunc(simulationOptions, func(o simulationOption) bool { return o.name == name })
		if i < 0 {
			names := make([]string, len(simulationOptions))
			for j, o := range simulationOptions {
				names[j] = o.name
			}
			return nil, fmt.Errorf("unknown option %s%s: the options are %s", strictyaml.Quote(name),
				strictyaml.SuggestName(name, names), strings.Join(names, ", "))
		}
		o := simulationOptions[i]
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > o.maxValue {
			return nil, fmt.Errorf("%s is %s: must be a number from 0 to %d", name, strictyaml.Quote(value), o.maxValue)
		}
		*o.field(s), words = n, words[1:]
	}
	return words, nil
}

// args returns the options other than 0 in text form.
func (s *Simulation) args() (words []string) {
	for _, o := range simulationOptions {
		if n := *o.field(s); n != 0 {
			words = append(words, fmt.Sprintf("%s=%d", o.name, n))
		}
	}
	return words
}
