package steps

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// post posts the message of a step.
func (x *call) post(s *numbered) {
	var o mpe.Operation
	err := x.operation(s, &o)
	var op mpe.Op
	if err == nil {
		op, err = x.dev.Start(o)
	}
	if err != nil {
		x.fail(s, err)
		x.takeBack()
		return
	}
	if x.notify != nil {
		op.Notify(x.notify)
	}
	x.under = append(x.under, message{*s, op})
}

// operation describes the message of a step to the device.
func (x *call) operation(s *numbered, o *mpe.Operation) error {
	if s.Peer < 0 || s.Piece != 0 && s.Piece < s.Len {
		return x.refuse(noFlows)
	}
	o.Kind, o.Peer, o.Tag, o.Comm = mpe.OpSend, x.Members[s.Peer], x.Tag, x.Comm
	o.Datatype, o.AnyDatatype = x.Datatype, x.AnyDatatype
	if x.limited {
		p, err := x.dev.Peer(o.Peer)
		if err != nil {
			return err
		}
		if p.NoComms {
			o.Tag, o.Comm = 0, 0
		}
	}
	at := s.From
	if s.Kind == coll.StepRecv {
		o.Kind, at = mpe.OpRecv, s.Into
	}
	switch {
	case at.Buf != coll.Blank:
		buf, err := x.view(at, s.Len)
		o.Buf = buf
		return err
	case s.Kind == coll.StepRecv: // another rank's token may be longer than ours
		o.Buf = x.blankIn[:]
	default:
		o.Buf = x.blankOut[:s.Len]
	}
	return nil
}

// noFlows refuses steps that this package does not know.
const noFlows = "this device cannot send a message on while it comes in: choose another algorithm"

// check looks at what has come.
func (m *message) check(st *mpe.Status) error {
	// The length of what has no content is nobody's concern.
	if m.Kind == coll.StepSend || m.Into.Buf == coll.Blank || st.Bytes == int64(m.Len) {
		return nil
	}
	return fmt.Errorf("it has %d bytes: %w", st.Bytes, mpe.ErrMismatch)
}

// work does the oldest of the local steps.
func (x *call) work() {
	s := x.local[0]
	x.local = append(x.local[:0], x.local[1:]...)
	if err := x.compute(&s); err != nil {
		x.fail(&s, err)
		x.takeBack()
		return
	}
	x.progress.Done(s.number)
}

func (x *call) compute(s *numbered) error {
	switch s.Kind {
	case coll.StepJoin:
		return nil
	case coll.StepCopy, coll.StepReduce, coll.StepReduceRight:
	default:
		return x.refuse(noFlows)
	}
	from, err := x.view(s.From, s.Len)
	if err != nil {
		return err
	}
	into, err := x.view(s.Into, s.Len)
	if err != nil {
		return err
	}
	switch s.Kind {
	case coll.StepCopy:
		copy(into, from)
	case coll.StepReduce:
		x.reduce(into, from)
	default: // from = into ∘ from, which may be lost
		x.reduce(from, into)
		copy(into, from)
	}
	return nil
}

// view gives the memory of a place.
func (x *call) view(at coll.Loc, n int) ([]byte, error) {
	var b []byte
	switch at.Buf {
	case coll.SendBuf:
		b = x.Send
	case coll.RecvBuf:
		b = x.Recv
	case coll.Scratch:
		b = x.scratch
	}
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, x.refuse("it needs %d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n : at.Off+n], nil
}
