package choice

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Forced are choices that no table is asked for. They must be the same on all ranks.
type Forced map[coll.Collective]Choice

// ErrForced matches every *ForcedError.
var ErrForced = errors.New("not a choice of an algorithm")

// ForcedError says what is wrong with the text of a Forced.
type ForcedError struct {
	// Text is the part that is wrong.
	Text string
	// Problem says what is wrong, and what is possible.
	Problem string
}

func (e *ForcedError) Error() string { return strictyaml.Quote(e.Text) + ": " + e.Problem }

// Is reports whether target is ErrForced.
func (e *ForcedError) Is(target error) bool { return target == ErrForced }

// ParseForced reads "bcast=atomic:64KiB,allreduce=ring". Nothing is an empty Forced.
// The error is a *ForcedError.
func ParseForced(text string) (Forced, error) {
	forced := Forced{}
	if strings.TrimSpace(text) == "" {
		return forced, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		name, choice, ok := strings.Cut(part, "=")
		if !ok {
			return nil, &ForcedError{part, "write COLLECTIVE=ALGORITHM, as in bcast=binomial, or COLLECTIVE=ALGORITHM:SEGMENT, as in bcast=chain:64KiB"}
		}
		c, err := ParseName(strings.TrimSpace(name))
		if err != nil {
			return nil, &ForcedError{part, err.Error()}
		}
		if _, twice := forced[c]; twice {
			return nil, &ForcedError{part, Name(c) + " is there twice: keep one of them"}
		}
		if forced[c], err = ParseChoice(c, strings.TrimSpace(choice)); err != nil {
			return nil, &ForcedError{part, err.(*ForcedError).Problem} //nolint:errorlint // ParseChoice has no other errors
		}
	}
	return forced, nil
}

// ParseChoice reads "binomial" or "chain:64KiB" for a collective. The error is a
// *ForcedError.
func ParseChoice(c coll.Collective, text string) (Choice, error) {
	var choice Choice
	if err := choice.UnmarshalText([]byte(text)); err != nil {
		return Choice{}, &ForcedError{text, err.Error()}
	}
	if choice.Segment == Auto {
		return Choice{}, &ForcedError{text, fmt.Sprintf("only a table has what %s needs: give a size, as in %s:64KiB", autoText, choice.Algorithm)}
	}
	if problem := choice.problem(c); problem != "" {
		return Choice{}, &ForcedError{text, problem}
	}
	return choice, nil
}

// Choose gives what is forced for the call; false if nothing is, or if it cannot carry
// out the call: then it is the table's to choose, so that to force something makes no
// call fail.
func (f Forced) Choose(c *coll.Call) (Choice, bool) {
	choice, ok := f[c.Collective]
	if !ok || c.Ranks < 2 {
		return Choice{}, false
	}
	for _, a := range algorithms[c.Collective] {
		if a.Name == choice.Algorithm && a.Can(c) {
			choice.Segment = whole(choice.Segment, c.Elem)
			return choice, true
		}
	}
	return Choice{}, false
}

// String is what ParseForced reads, in a fixed order.
func (f Forced) String() string {
	var parts []string
	for c, choice := range f {
		parts = append(parts, Name(c)+"="+choice.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
