package choice

import (
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Forced holds choices that override the table. All ranks must have the same forced choices.
type Forced map[coll.Collective]Choice

// Choose returns the forced choice for the call. It returns false if no choice is forced, or if the algorithm does not
// support the call. The caller must then consult the table, so that forcing an algorithm never makes a call fail.
func (f Forced) Choose(c *coll.Call) (Choice, bool) {
	choice, ok := f[c.Collective]
	if !ok || c.Ranks < 2 || !choice.supports(c) {
		return Choice{}, false
	}
	choice.Segment = roundSegment(choice.Segment, c.Elem)
	return choice, true
}

// String returns the choices as "allreduce=ring,bcast=atomic:64KiB", in a fixed order.
func (f Forced) String() string {
	var parts []string
	for c, choice := range f {
		parts = append(parts, CollectiveName(c)+"="+choice.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
