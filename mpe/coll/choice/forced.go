package choice

import (
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Forced are choices that no table is asked for. They must be the same on all ranks.
type Forced map[coll.Collective]Choice

// Choose gives what is forced for the call; false if nothing is, or if it cannot carry
// out the call: then it is the table's to choose, so that to force something makes no
// call fail.
func (f Forced) Choose(c *coll.Call) (Choice, bool) {
	choice, ok := f[c.Collective]
	if !ok || c.Ranks < 2 || !choice.can(c) {
		return Choice{}, false
	}
	choice.Segment = whole(choice.Segment, c.Elem)
	return choice, true
}

// String is "allreduce=ring,bcast=atomic:64KiB", in a fixed order.
func (f Forced) String() string {
	var parts []string
	for c, choice := range f {
		parts = append(parts, Name(c)+"="+choice.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
