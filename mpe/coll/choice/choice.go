package choice

import (
	"fmt"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Class describes how the ranks of a call exchange messages, and whether they share cores.
type Class string

const (
	// Memory means that all ranks of the call share memory.
	Memory Class = "memory"
	// Network means that some ranks do not share memory.
	Network Class = "network"
	// OversubscribedMemory and OversubscribedNetwork mean, in addition, that each host runs more ranks than it has
	// cores. A call then takes as long as all of its messages together, rather than its longest path.
	OversubscribedMemory  Class = "oversubscribed_memory"
	OversubscribedNetwork Class = "oversubscribed_network"
)

// Classes lists all classes.
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

// sibling returns the class of calls that differs from this one only in whether ranks share cores.
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

// Choice is an algorithm and its segment size.
type Choice struct {
	// Algorithm is the name of one of the collective's algorithms.
	Algorithm string
	// Segment is the value for Call.Segment in bytes; 0 means undivided data. In a table, it may be AutoSegment.
	Segment int
}

// AutoSegment as a Segment makes coll.PipelineSegment compute the segment size from the number of ranks, the length
// of the data and the link's alpha and beta.
const AutoSegment = -1

const autoText = "auto"

// AutoAlgorithm names the only algorithm that supports AutoSegment: the one whose cost coll.PipelineSegment computes.
const AutoAlgorithm = "chain"

// maxSegment limits segment sizes parsed from text, so that they fit an int on every machine.
const maxSegment = 1 << 30

// String returns the choice as "binomial", "chain:64KiB" or "chain:auto".
func (c Choice) String() string {
	switch c.Segment {
	case 0:
		return c.Algorithm
	case AutoSegment:
		return c.Algorithm + ":" + autoText
	}
	return c.Algorithm + ":" + bytesize.Size(c.Segment).String()
}

// MarshalText returns String.
func (c Choice) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the output of String. It accepts unknown algorithms, because the valid names depend on the
// collective.
func (c *Choice) UnmarshalText(text []byte) error {
	name, segment, cut := strings.Cut(string(text), ":")
	*c = Choice{Algorithm: name}
	switch {
	case !cut:
		return nil
	case segment == autoText:
		c.Segment = AutoSegment
		return nil
	}
	var size bytesize.Size
	if err := size.UnmarshalText([]byte(segment)); err != nil || size < 1 || size > maxSegment {
		return fmt.Errorf("segments of %q: give a size from 1 to 1GiB, as in %s:64KiB", segment[:min(len(segment), 64)],
			name)
	}
	c.Segment = int(size)
	return nil
}

// algorithms lists the algorithms of each collective. The first one supports every call.
var algorithms = func() (all [coll.Exscan + 1][]*coll.Algorithm) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		all[c] = coll.Algorithms(c)
	}
	return all
}()

// CollectiveName returns the name of a collective in tables and configurations, such as "bcast" or "reduce_scatter".
func CollectiveName(c coll.Collective) string { return strings.ToLower(c.String()) }

// CollectiveNames returns the names of all collectives.
func CollectiveNames() (names []string) {
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		names = append(names, CollectiveName(c))
	}
	return names
}
