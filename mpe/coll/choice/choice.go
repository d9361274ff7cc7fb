package choice

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Class is what ranks exchange messages through, and whether they share cores.
type Class string

// The classes.
const (
	// Memory: all ranks of the call share memory.
	Memory Class = "memory"
	// Network: they do not, or not all.
	Network Class = "network"
	// OversubscribedMemory and OversubscribedNetwork: besides, the host of each rank has more
	// ranks than cores. Then a call takes as long as all its messages together, rather than
	// the longest path of them.
	OversubscribedMemory  Class = "oversubscribed_memory"
	OversubscribedNetwork Class = "oversubscribed_network"
)

// Classes are all of them.
var Classes = [...]Class{Memory, Network, OversubscribedMemory, OversubscribedNetwork}

// ClassOf returns the class of ranks.
func ClassOf(memory, oversubscribed bool) Class {
	switch {
	case memory && oversubscribed:
		return OversubscribedMemory
	case memory:
		return Memory
	case oversubscribed:
		return OversubscribedNetwork
	}
	return Network
}

// sibling is the class of the same ranks with more, or fewer, cores.
func (c Class) sibling() Class {
	switch c {
	case OversubscribedMemory:
		return Memory
	case OversubscribedNetwork:
		return Network
	case Memory:
		return OversubscribedMemory
	}
	return OversubscribedNetwork
}

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

const autoText = "auto"

// AutoFor is the algorithm whose cost coll.PipelineSegment knows: the only one that has Auto.
const AutoFor = "chain"

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
	return c.Algorithm + ":" + bytesize.Size(c.Segment).String()
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
	var size bytesize.Size
	if err := size.UnmarshalText([]byte(segment)); err != nil || size < 1 || size > maxSegment {
		return fmt.Errorf("segments of %q: give a size from 1 to 1GiB, as in %s:64KiB", segment[:min(len(segment), 64)], name)
	}
	c.Segment = int(size)
	return nil
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
