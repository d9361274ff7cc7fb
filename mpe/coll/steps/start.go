package steps

import (
	"context"
	"fmt"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Poster is what posts the messages: what mpe.Device has for that.
type Poster interface {
	Rank() int
	Size() int
	Peer(rank int) (mpe.PeerInfo, error)
	Start(op mpe.Operation) (mpe.Op, error)
	Await(ctx context.Context, c <-chan struct{}) error
}

// Start begins a collective call of the rank. c may be used again when it returns, but
// what its slices point to belongs to the call until that has ended.
//
// The error is a *coll.CallError if the call, or the algorithm that it names, cannot be;
// mpe.ErrLength if a peer's wire cannot carry one of its messages; op.ErrUndefined; or
// mpe.ErrRank. Nothing has been sent then. What fails later is a *mpe.StepError, and the end
// of the call.
func Start(dev Poster, c *mpe.Collective) (mpe.Op, error) {
	x := calls.Get().(*call)
	if err := x.prepare(dev, c); err != nil {
		x.reset()
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.advance()
	return x, nil
}

// calls are for reuse.
var calls = sync.Pool{New: func() any { return &call{wake: make(chan struct{}, 1)} }}

// Weak reports whether an operation is a call of this package, which goes on only while
// somebody waits for it or looks at it.
func Weak(o mpe.Op) bool {
	_, weak := o.(*call)
	return weak
}

// prepare makes the schedule of a call, and everything that can be wrong with it known.
func (x *call) prepare(dev Poster, c *mpe.Collective) error {
	x.dev, x.Collective = dev, *c
	words, err := x.peers()
	if err != nil {
		return err
	}
	if err := x.reduction(); err != nil {
		return err
	}
	a, err := x.choose()
	if err != nil {
		return err
	}
	x.algorithm = a.Name
	if words && max(x.Call.Elem, 1)%protocol.WordLen != 0 {
		if err := x.carried(a); err != nil {
			return err
		}
	}
	s, err := a.Schedule(x.Call)
	if err != nil {
		return err
	}
	if s.Scratch > cap(x.scratch) {
		x.scratch = make([]byte, s.Scratch)
	}
	x.progress = coll.NewProgress(s, 0)
	return nil
}

// peers looks at who takes part, and reports whether there are wires that carry whole
// words only.
func (x *call) peers() (words bool, err error) {
	c := &x.Call
	if len(x.Members) != c.Ranks || c.Rank < 0 || c.Rank >= c.Ranks || x.Members[c.Rank] != x.dev.Rank() {
		return false, x.refuse("it is rank %d of the world, which is not number %d of %d members", x.dev.Rank(), c.Rank, c.Ranks)
	}
	for i, world := range x.Members {
		p, err := x.dev.Peer(world)
		if err != nil {
			return false, err
		}
		if i == c.Rank {
			continue
		}
		words = words || p.Words
		x.limited = x.limited || p.Words || p.NoComms || p.NoEmpty
		x.byOrder = x.byOrder || p.NoComms
	}
	if x.Call.Token < 0 || x.Call.Token > protocol.WordLen {
		return false, x.refuse("tokens of %d bytes: they have %d at most", x.Call.Token, protocol.WordLen)
	}
	// All must send tokens of the same size. That a peer takes no empty messages is
	// known to some of the ranks only, and that the wire has whole words to both ends.
	if x.Call.Token == 0 && x.limited {
		x.Call.Token = protocol.WordLen
	}
	return words, nil
}

// reduction finds what combines.
func (x *call) reduction() (err error) {
	switch x.Call.Collective {
	case coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.Scan, coll.Exscan:
	default:
		return nil
	}
	if x.User != nil {
		x.reduce = func(inout, in []byte) { x.User(in, inout) }
		return nil
	}
	if size := x.Type.Size(); max(x.Call.Elem, 1) != size {
		return x.refuse("elements of %d bytes are not of type %v, which has %d", x.Call.Elem, x.Type, size)
	}
	x.reduce, err = op.Lookup(x.Op, x.Type)
	return err
}

// choose gives the algorithm. All ranks come to the same.
func (x *call) choose() (*coll.Algorithm, error) {
	c := &x.Call
	if x.Algorithm != "" {
		return coll.Find(c.Collective, x.Algorithm)
	}
	if x.byOrder { // as the engine does
		return coll.ByOrder(c)
	}
	return coll.First(c)
}

// carried looks at all messages before any is sent, for those that are no whole words
// and that a peer's wire would have to carry.
func (x *call) carried(a *coll.Algorithm) error {
	s, err := a.Schedule(x.Call)
	if err != nil {
		return err
	}
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if step.Len%protocol.WordLen == 0 || step.Kind != coll.StepSend && step.Kind != coll.StepRecv {
			continue
		}
		if p, _ := x.dev.Peer(x.Members[step.Peer]); p.Words {
			return fmt.Errorf("%v by %s has a message of %d bytes between rank %d and rank %d of the world: %w, which the wire (profile %s) needs",
				x.Call.Collective, a.Name, step.Len, x.dev.Rank(), x.Members[step.Peer], mpe.ErrLength, p.Profile)
		}
	}
	return nil
}

func (x *call) refuse(format string, args ...any) error {
	return &coll.CallError{Collective: x.Call.Collective, Algorithm: x.algorithm, Problem: fmt.Sprintf(format, args...)}
}
