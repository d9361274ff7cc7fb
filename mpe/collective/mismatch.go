package collective

import (
	"fmt"
	"math"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// callWord describes a collective call in a word of shared memory, so that a rank that made a different call can name
// both calls in its error. From the most significant bit down, it contains 6 bits for the collective, 6 for the
// operation, 20 for the root and 32 for the bytes. A root or length that does not fit is clamped.
type callWord uint64

func newCallWord(call *coll.Call, o op.Op) callWord {
	const maxRoot = 1<<20 - 1
	root := 0
	if call.Collective.Rooted() {
		root = min(call.Root, maxRoot)
	}
	return callWord(call.Collective)<<58 | callWord(o&(1<<6-1))<<52 | callWord(root)<<32 | callWord(min(call.Bytes,
		math.MaxUint32))
}

// String returns the call as text, for example "Bcast of 40 bytes with root 1".
func (w callWord) String() string {
	collective := coll.Collective(w >> 58)
	var b strings.Builder
	b.WriteString(collective.String())
	if collective != coll.Barrier {
		fmt.Fprintf(&b, " of %d bytes", uint32(w))
	}
	if o := op.Op(w >> 52 & (1<<6 - 1)); o != 0 {
		fmt.Fprintf(&b, " by %v", o)
	}
	if collective.Rooted() {
		fmt.Fprintf(&b, " with root %d", w>>32&(1<<20-1))
	}
	return b.String()
}
