package mpi

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// call is what there is to say of a call when it ends.
type call struct {
	comm *Comm
	op   string
	peer int // in the communicator
	tag  int
	send bool
	// room is the size of a receive's buffer.
	room int
}

// callf is a call that has no peer.
func (c *Comm) callf(op string) call {
	return call{comm: c, op: op, peer: Undefined, tag: Undefined}
}

// fail is the error of a call with the device's error as its cause.
func (k call) fail(err error) error { return k.error(classOfDevice(err), err) }

func (k call) failf(class Class, format string, args ...any) error {
	return k.error(class, fmt.Errorf(format, args...))
}

func (k call) error(class Class, err error) error {
	e := &Error{Class: class, Op: k.op, Rank: k.comm.Rank(), Peer: k.peer, Send: k.send, Tag: k.tag, Err: err}
	if k.comm != nil {
		e.Comm = k.comm.String()
	}
	return e
}

func (k call) noRank(r int) error {
	return k.failf(ErrRank, "there is no rank %d: %v has ranks 0 to %d", r, k.comm, k.comm.Size()-1)
}

// check refuses a communicator that cannot be used.
func (k call) check() error {
	switch {
	case k.comm == nil:
		return k.failf(ErrComm, "the communicator is nil: the calling rank is not a member of it")
	case k.comm.freed.Load():
		return k.failf(ErrComm, "the communicator has been freed")
	}
	return nil
}

// outgoing checks a send and describes it to the device. It must not be called
// for ProcNull.
func (k call) outgoing(kind mpe.OpKind, w words) (mpe.Operation, error) {
	op := mpe.Operation{Kind: kind, Tag: k.tag, Buf: w.bytes, Datatype: w.datatype}
	if err := k.check(); err != nil {
		return op, err
	}
	c := k.comm
	if k.peer < 0 || k.peer >= c.Size() {
		return op, k.noRank(k.peer)
	}
	if k.tag < 0 || k.tag > TagUB {
		return op, k.failf(ErrTag, "a tag is 0 to %d", TagUB)
	}
	op.Peer, op.Comm = c.group.ranks[k.peer], c.number
	p := &c.p.peers[op.Peer]
	switch {
	case p.SmallTags && k.tag > maxSmallTag:
		return op, k.badTag(p)
	case p.NoEmpty && len(w.bytes) == 0:
		return op, k.failf(ErrCount, "the peer's wire (profile %s) carries no empty messages: send a word, whatever its value", p.Profile)
	}
	return op, k.wholeWords(p, len(w.bytes))
}

// incoming does the same for a receive.
func (k call) incoming(w words) (mpe.Operation, error) {
	op := mpe.Operation{Kind: mpe.OpRecv, Buf: w.bytes, Datatype: w.datatype, AnyDatatype: w.any}
	m, err := k.match()
	if err != nil {
		return op, err
	}
	op.Peer, op.Tag, op.Comm = m.Source, m.Tag, m.Comm
	if m.Source == mpe.AnySource {
		return op, nil
	}
	return op, k.wholeWords(&k.comm.p.peers[m.Source], len(w.bytes))
}

// match checks what a receive or a probe asks for.
func (k call) match() (mpe.Match, error) {
	m := mpe.Match{Source: mpe.AnySource, Tag: k.tag}
	if err := k.check(); err != nil {
		return m, err
	}
	c := k.comm
	if k.tag == AnyTag {
		m.Tag = mpe.AnyTag
	} else if k.tag < 0 || k.tag > TagUB {
		return m, k.failf(ErrTag, "a tag is 0 to %d, or AnyTag", TagUB)
	}
	m.Comm = c.number
	if k.peer == AnySource {
		return m, nil
	}
	if k.peer < 0 || k.peer >= c.Size() {
		return m, k.noRank(k.peer)
	}
	m.Source = c.group.ranks[k.peer]
	if p := &c.p.peers[m.Source]; p.SmallTags && k.tag > maxSmallTag {
		return m, k.badTag(p)
	}
	return m, nil
}

// maxSmallTag is the largest tag that fits into the byte of profile v0.9.
const maxSmallTag = 255

func (k call) badTag(p *mpe.PeerInfo) error {
	return k.failf(ErrTag, "the peer's wire (profile %s) carries tags of 0 to %d", p.Profile, maxSmallTag)
}

func (k call) wholeWords(p *mpe.PeerInfo, bytes int) error {
	if p.Words && bytes%protocol.WordLen != 0 {
		return k.failf(ErrCount, "%d bytes: the peer's wire (profile %s) carries whole 32-bit words; use a count that gives a multiple of %d bytes",
			bytes, p.Profile, protocol.WordLen)
	}
	return nil
}

// end turns the device's outcome of an operation into ours.
func (k call) end(st mpe.Status, err error) (Status, error) {
	if err == nil {
		if k.send {
			return emptyStatus, nil
		}
		return k.status(st)
	}
	if errors.Is(err, mpe.ErrCancelled) {
		s := emptyStatus
		s.Cancelled = true
		return s, nil
	}
	s := emptyStatus
	class := classOfDevice(err)
	if class == ErrTruncate && !k.send {
		if whole, bad := k.status(st); bad == nil {
			s = whole
			s.Bytes = int64(k.room) // the beginning is there
		}
	}
	return s, k.error(class, err)
}

// status translates the status of a message that was received or probed.
func (k call) status(st mpe.Status) (Status, error) {
	c := k.comm
	if st.Peer < 0 || st.Peer >= len(c.local) || c.local[st.Peer] == Undefined {
		return emptyStatus, k.failf(ErrIntern, "the device gave a message from rank %d of the world, which is not a member", st.Peer)
	}
	s := Status{Source: c.local[st.Peer], Tag: st.Tag, Bytes: bytesOf(st)}
	if k.tag != AnyTag && c.p.peers[st.Peer].NoTags {
		s.Tag = k.tag
	}
	return s, nil
}
