package collectives

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// ErrForced matches every *ForcedError.
var ErrForced = errors.New("not a choice of an algorithm")

// ForcedError is a syntax error in the text of a choice.Forced.
type ForcedError struct {
	// Text is the invalid part.
	Text string
	// Problem describes the problem and the valid values.
	Problem string
}

func (e *ForcedError) Error() string { return strictyaml.Quote(e.Text) + ": " + e.Problem }

// Is reports whether target is ErrForced.
func (e *ForcedError) Is(target error) bool { return target == ErrForced }

// ParseForced parses a text such as "bcast=atomic:64KiB,allreduce=ring". For an empty text it returns an empty
// choice.Forced. The error is a *ForcedError.
func ParseForced(text string) (choice.Forced, error) {
	forced := choice.Forced{}
	if strings.TrimSpace(text) == "" {
		return forced, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		name, by, ok := strings.Cut(part, "=")
		if !ok {
			return nil, &ForcedError{part, "write COLLECTIVE=ALGORITHM, as in bcast=binomial, or " +
				"COLLECTIVE=ALGORITHM:SEGMENT, as in bcast=chain:64KiB"}
		}
		collective, err := ParseName(strings.TrimSpace(name))
		if err != nil {
			return nil, &ForcedError{part, err.Error()}
		}
		if _, twice := forced[collective]; twice {
			return nil, &ForcedError{part, choice.CollectiveName(collective) + " is listed twice: keep one of them"}
		}
		if forced[collective], err = ParseChoice(collective, strings.TrimSpace(by)); err != nil {
			return nil, &ForcedError{part, err.(*ForcedError).Problem} //nolint:errorlint // ParseChoice has no other errors
		}
	}
	return forced, nil
}

// ParseChoice parses a choice for a collective, such as "binomial" or "chain:64KiB". The error is a *ForcedError.
func ParseChoice(collective coll.Collective, text string) (choice.Choice, error) {
	var by choice.Choice
	if err := by.UnmarshalText([]byte(text)); err != nil {
		return choice.Choice{}, &ForcedError{text, err.Error()}
	}
	if by.Segment == choice.AutoSegment {
		return choice.Choice{}, &ForcedError{text, fmt.Sprintf("only a table has the values that %s needs: give a "+
			"size, as in %s:64KiB", choice.Choice{Segment: choice.AutoSegment}.String()[1:], by.Algorithm)}
	}
	if problem := choiceProblem(collective, by); problem != "" {
		return choice.Choice{}, &ForcedError{text, problem}
	}
	return by, nil
}

// choiceProblem describes why choice c cannot be used for a collective, or returns "" if it can.
func choiceProblem(of coll.Collective, c choice.Choice) string {
	var all, segmented []string
	for _, a := range coll.Algorithms(of) {
		all = append(all, a.Name)
		if a.Segmented {
			segmented = append(segmented, a.Name)
		}
		if a.Name == c.Algorithm && (c.Segment == 0 || a.Segmented && (c.Segment > 0 || a.Name == choice.AutoAlgorithm)) {
			return ""
		}
	}
	name := choice.CollectiveName(of)
	switch _, err := coll.Find(of, c.Algorithm); {
	case err != nil:
		return fmt.Sprintf("%s has no algorithm %s%s: it has %s", name, strictyaml.Quote(c.Algorithm),
			strictyaml.SuggestName(c.Algorithm, all), strings.Join(all, ", "))
	case len(segmented) == 0:
		return fmt.Sprintf("%s does not segment its data, nor does any other algorithm of %s: leave the segment out",
			c.Algorithm, name)
	case c.Segment == choice.AutoSegment:
		return fmt.Sprintf("%s has no segments by formula: give it a size, or leave it out", c.Algorithm)
	}
	return fmt.Sprintf("%s does not segment its data: leave the segment out, or use %s", c.Algorithm,
		strings.Join(segmented, " or "))
}

// ParseName is the inverse of choice.CollectiveName. The error lists the valid names.
func ParseName(name string) (coll.Collective, error) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		if choice.CollectiveName(c) == name {
			return c, nil
		}
	}
	names := choice.CollectiveNames()
	return 0, fmt.Errorf("unknown collective %s%s: the collectives are %s", strictyaml.Quote(name),
		strictyaml.SuggestName(name, names), strings.Join(names, ", "))
}
