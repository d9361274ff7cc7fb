package tune

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Options select the measurements.
type Options struct {
	// Transports lists the transports between ranks: shm for the classes in which ranks share memory, udp and tcp for
	// the other classes. The default is shm and udp.
	Transports []string
	// Ranks lists the numbers of ranks. The default is 2, 4 and 8, or 2 and 4 if Quick is set.
	Ranks []int
	// Collectives lists the collectives to measure, by their names in a table. The default is all collectives.
	Collectives []string
	// MaxBytes is the maximum length of a vector, or of all blocks together. 0 means 2 MiB, or 32 KiB if Quick is set.
	MaxBytes int
	// Rounds is the number of rounds. 0 means 5, or 1 if Quick is set.
	Rounds int
	// Limit is the time after which no new measurement begins. 0 means 30 minutes.
	Limit time.Duration
	// Quick measures only a few calls, to check that everything works.
	Quick bool
}

const (
	defaultMaxBytes = 2 << 20
	quickMaxBytes   = 32 << 10
	defaultRounds   = 5
	defaultLimit    = 30 * time.Minute

	// minBytes is the length, in bytes, of the shortest vector or block that is measured.
	minBytes = 8
	// growth is the factor between successive lengths.
	growth      = 4
	quickGrowth = 64

	maxRanks       = 128
	maxVectorBytes = 1 << 30
	maxRounds      = 1000
)

// sharesMemory states for each transport whether ranks that use it share memory.
var sharesMemory = map[string]bool{"shm": true, "udp": false, "tcp": false}

// UsageError reports that options are invalid.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// setDefaults sets the defaults, and returns the collectives to measure. Errors are of type *UsageError.
func (o *Options) setDefaults() ([]coll.Collective, error) {
	setDefault(&o.Rounds, defaultRounds, 1, o.Quick)
	setDefault(&o.MaxBytes, defaultMaxBytes, quickMaxBytes, o.Quick)
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if len(o.Ranks) == 0 {
		o.Ranks = []int{2, 4, 8}
		if o.Quick {
			o.Ranks = []int{2, 4}
		}
	}
	if len(o.Transports) == 0 {
		o.Transports = []string{"shm", "udp"}
	}
	switch {
	case o.Rounds < 1 || o.Rounds > maxRounds:
		return nil, usagef("%d rounds: there are 1 to %d", o.Rounds, maxRounds)
	case o.MaxBytes < minBytes || o.MaxBytes > maxVectorBytes:
		return nil, usagef("at most %d bytes: give %d to %d", o.MaxBytes, minBytes, maxVectorBytes)
	case o.Limit < 0:
		return nil, usagef("a limit of %v: give a time", o.Limit)
	}
	for i, n := range o.Ranks {
		if n < 2 || n > maxRanks {
			return nil, usagef("%d ranks: a collective has 2 to %d here", n, maxRanks)
		}
		if slices.Contains(o.Ranks[:i], n) {
			return nil, usagef("%d ranks are named twice", n)
		}
	}
	slices.Sort(o.Ranks)
	has := map[choice.Class]string{}
	for _, t := range o.Transports {
		shares, ok := sharesMemory[t]
		class := choice.ClassOf(shares, false)
		if !ok {
			return nil, usagef("there is no transport %q; there are shm, udp, tcp", t)
		}
		if other := has[class]; other != "" {
			return nil, usagef("%s and %s are both of the class %s, of which a table has one: name one of them", other,
				t, class)
		}
		has[class] = t
	}
	if len(o.Collectives) == 0 {
		o.Collectives = choice.CollectiveNames()
	}
	var all []coll.Collective
	for _, name := range o.Collectives {
		collective, err := collectives.ParseName(strings.TrimSpace(name))
		if err != nil {
			return nil, usagef("%v", err)
		}
		if slices.Contains(all, collective) {
			return nil, usagef("%s is named twice", name)
		}
		all = append(all, collective)
	}
	slices.Sort(all)
	return all, nil
}

// setDefault sets an option that is 0 to its default.
func setDefault(option *int, usually, quick int, isQuick bool) {
	switch {
	case *option != 0:
	case isQuick:
		*option = quick
	default:
		*option = usually
	}
}
