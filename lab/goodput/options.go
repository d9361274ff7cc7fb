package goodput

import (
	"fmt"
	"slices"
	"strings"
)

// Options select the measurements.
type Options struct {
	// Parts lists the parts to measure, with names that the function Parts returns. The default is all parts.
	Parts []string
	// RTTs in milliseconds and Losses in percent are for the part loss, MTUs for the part mtu. The defaults are 2, 20
	// and 100 for RTTs; 0, 0.1, 1 and 5 for Losses; 1280 and 9000 for MTUs. The other parts use an MTU of 1500.
	RTTs   []float64
	Losses []float64
	MTUs   []int
	// Only lists the sides to measure. The default is all.
	Only []string
	// Rounds is the number of rounds. 0 means 3, or 1 if Quick is set. Seed is the seed of the first round; each
	// further round increases it by one.
	Rounds, Seed int
	// Quick measures only a few cells for one second, to check that everything works.
	Quick bool
}

const defaultRounds = 3

// UsageError reports that options are invalid.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// setDefaults sets the defaults. Errors are of type *UsageError.
func (o *Options) setDefaults() error {
	if o.Rounds == 0 {
		o.Rounds = defaultRounds
		if o.Quick {
			o.Rounds = 1
		}
	}
	o.Parts = orDefault(o.Parts, Parts())
	if o.Quick {
		o.RTTs, o.Losses, o.MTUs = orDefault(o.RTTs, []float64{middleRTT}), orDefault(o.Losses, []float64{0, 1}),
			orDefault(o.MTUs, []int{1280})
	}
	o.RTTs, o.Losses, o.MTUs = orDefault(o.RTTs, []float64{2, 20, 100}), orDefault(o.Losses, []float64{0, 0.1, 1, 5}),
		orDefault(o.MTUs, []int{1280, 9000})
	if o.Rounds < 1 {
		return usagef("%d rounds: give at least 1", o.Rounds)
	}
	for _, x := range []struct {
		what       string
		given, has []string
	}{{"part", o.Parts, Parts()}, {"side", o.Only, sides}} {
		for i, name := range x.given {
			switch {
			case !slices.Contains(x.has, name):
				return usagef("there is no %s %q; there are %s", x.what, name, strings.Join(x.has, ", "))
			case slices.Contains(x.given[:i], name):
				return usagef("%s is named twice", name)
			}
		}
	}
	cells := o.selectCells()
	if len(cells) == 0 {
		return usagef("none of the sides is in any of the parts")
	}
	for i := range cells {
		if err := cells[i].config(0).Check(); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

// orDefault returns the list some, or the list all if some is empty.
func orDefault[T any](some, all []T) []T {
	if len(some) == 0 {
		return all
	}
	return some
}
