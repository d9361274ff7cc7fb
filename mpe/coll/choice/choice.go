package choice

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Class is what ranks exchange messages through.
type Class string

// The classes.
const (
	// Memory: all ranks of the call share memory.
	Memory Class = "memory"
	// Network: they do not, or not all.
	Network Class = "network"
)

// Choice is an algorithm, and how it cuts.
type Choice struct {
	// Algorithm is the name of one of the collective's.
	Algorithm string
	// Segment is a Call.Segment in bytes; 0 leaves the data whole. In a table it may
	// be Auto.
	Segment int
}

// Auto is the Segment of a chain that goes by the number of ranks, the length of the
// data and the link's alpha and beta: coll.PipelineSegment.
const Auto = -1

const (
	autoText = "auto"
	// autoFor is the algorithm whose cost PipelineSegment knows.
	autoFor = "chain"
)

// maxSegment keeps a length given in text within an int of any machine.
const maxSegment = 1 << 30

// String is "binomial", "chain:64KiB" or "chain:auto".
func (c Choice) String() string {
	switch c.Segment {
	case 0:
		return c.Algorithm
	case Auto:
		return c.Algorithm + ":" + autoText
	}
	return c.Algorithm + ":" + strictyaml.Size(c.Segment).String()
}

// MarshalText returns String.
func (c Choice) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what String writes. Whether there is such an algorithm depends on
// the collective.
func (c *Choice) UnmarshalText(text []byte) error {
	name, segment, cut := strings.Cut(string(text), ":")
	*c = Choice{Algorithm: name}
	switch {
	case !cut:
		return nil
	case segment == autoText:
		c.Segment = Auto
		return nil
	}
	var size strictyaml.Size
	if err := size.UnmarshalText([]byte(segment)); err != nil || size < 1 || size > maxSegment {
		return fmt.Errorf("segments of %s: give a size from 1 to 1GiB, as in %s:64KiB", strictyaml.Quote(segment), name)
	}
	c.Segment = int(size)
	return nil
}

// problem says why the collective cannot be carried out so, or "".
func (c Choice) problem(of coll.Collective) string {
	var all, segmented []string
	for _, a := range algorithms[of] {
		all = append(all, a.Name)
		if a.Segmented {
			segmented = append(segmented, a.Name)
		}
		if a.Name == c.Algorithm && (c.Segment == 0 || a.Segmented && (c.Segment > 0 || a.Name == autoFor)) {
			return ""
		}
	}
	name := Name(of)
	switch _, err := coll.Find(of, c.Algorithm); {
	case err != nil:
		return fmt.Sprintf("%s has no algorithm %s%s: it has %s", name, strictyaml.Quote(c.Algorithm),
			strictyaml.DidYouMean(c.Algorithm, all), strings.Join(all, ", "))
	case len(segmented) == 0:
		return fmt.Sprintf("%s does not cut its data, and neither does another algorithm of %s: leave the segment out", c.Algorithm, name)
	case c.Segment == Auto:
		return fmt.Sprintf("%s has no segments by formula: give it a size, or leave it out", c.Algorithm)
	}
	return fmt.Sprintf("%s does not cut its data: leave the segment out, or take %s", c.Algorithm, strings.Join(segmented, " or "))
}

// algorithms are those of each collective. The first fits every call.
var algorithms = func() (all [coll.Exscan + 1][]*coll.Algorithm) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		all[c] = coll.Algorithms(c)
	}
	return all
}()

// Name is what tables and configurations call a collective: "bcast", "reduce_scatter".
func Name(c coll.Collective) string { return strings.ToLower(c.String()) }

// Names are those of all collectives.
func Names() (names []string) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		names = append(names, Name(c))
	}
	return names
}

// ParseName is the inverse of Name. The error says what there is.
func ParseName(name string) (coll.Collective, error) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		if Name(c) == name {
			return c, nil
		}
	}
	names := Names()
	return 0, fmt.Errorf("there is no collective %s%s: there are %s", strictyaml.Quote(name), strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}
