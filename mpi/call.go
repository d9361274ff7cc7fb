package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// call holds the arguments of an MPI call, so that errors can report them. Functions fill it in place and pass it by
// pointer, because copying it takes longer than checking it.
type call struct {
	comm *Comm
	op   string
	// kind is 0 if the call has no peer.
	kind mpe.OpKind
	// datatype and anyDatatype have the same meaning as in mpe.Operation.
	datatype    protocol.Datatype
	anyDatatype bool
	peer        int // rank in the communicator
	tag         int
	// bytes is the message or the receive buffer. If packedBuf is set, it is that buffer's packed copy.
	bytes     []byte
	packedBuf *packedBuffer
	// claim identifies the message that a matched probe has reserved for this receive. It is 0 in any other call.
	claim int
}

// set sets the fields that describe a message. It assigns them one by one, because the compiler would build a literal
// in temporary memory and then copy it.
func (k *call) set(c *Comm, op string, kind mpe.OpKind, peer, tag int) {
	k.comm, k.op, k.kind, k.peer, k.tag = c, op, kind, peer, tag
}

// isSend reports whether the peer is a destination.
func (k *call) isSend() bool { return k.kind == mpe.OpSend || k.kind == mpe.OpSendSync }

// newCall returns a call without a peer.
func (c *Comm) newCall(op string) call {
	return call{comm: c, op: op, peer: Undefined, tag: Undefined}
}

// fail returns an error of the call. Its cause is err, an error of the device.
func (k *call) fail(err error) error { return k.error(deviceErrorClass(err), err) }

func (k *call) failf(class Class, format string, args ...any) error {
	return k.error(class, fmt.Errorf(format, args...))
}

func (k *call) error(class Class, err error) error {
	e := &Error{Class: class, Op: k.op, Rank: k.comm.Rank(), Peer: k.peer, Send: k.isSend(), Tag: k.tag, Err: err}
	if k.comm != nil {
		e.Comm = k.comm.String()
	}
	return e
}

func (k *call) rankError(r int) error {
	return k.failf(ErrRank, "there is no rank %s: %v has ranks 0 to %d", rankText(r), k.comm, len(k.comm.members)-1)
}

// check returns an error if the communicator cannot be used.
func (k *call) check() error {
	switch {
	case k.comm == nil:
		return k.failf(ErrComm, "the communicator is nil: the calling rank is not a member of it")
	case k.comm.freed.Load():
		return k.failf(ErrComm, "the communicator has been freed, or its Idup is pending")
	}
	return nil
}

// buildSend checks a send and fills in o, its description for the device. It must not be called for ProcNull.
func (k *call) buildSend(o *mpe.Operation) error {
	comm := k.comm
	if comm == nil || comm.freed.Load() {
		return k.check()
	}
	if k.peer < 0 || k.peer >= len(comm.members) {
		return k.rankError(k.peer)
	}
	if k.tag < 0 || k.tag > TagUB {
		return k.failf(ErrTag, "a tag is 0 to %d", TagUB)
	}
	m := comm.members[k.peer]
	o.Kind, o.Peer, o.Tag, o.Comm = k.kind, int(m.worldRank), k.tag, comm.number
	o.Buf, o.Datatype = k.bytes, k.datatype
	if m.hasWireLimits {
		return k.checkPeerLimits(&comm.proc.peers[m.worldRank])
	}
	return nil
}

// checkPeerLimits returns an error if the peer's wire cannot carry the message.
func (k *call) checkPeerLimits(p *mpe.PeerInfo) error {
	switch {
	case p.SmallTags && k.tag > maxSmallTag:
		return k.tagError(p)
	case p.NoEmpty && len(k.bytes) == 0:
		return k.failf(ErrCount,
			"the peer's wire (profile %s) carries no empty messages: send a word, whatever its value", p.Profile)
	}
	return k.checkWholeWords(p)
}

// buildRecv checks a receive and fills in o, its description for the device.
func (k *call) buildRecv(o *mpe.Operation) error {
	var match mpe.Match
	if err := k.match(&match); err != nil {
		return err
	}
	o.Kind, o.Peer, o.Tag, o.Comm = mpe.OpRecv, match.Source, match.Tag, match.Comm
	o.Buf, o.Datatype, o.AnyDatatype = k.bytes, k.datatype, k.anyDatatype
	if k.claim != 0 {
		o.Tag, o.Comm = k.claim, mpe.ClaimComm
	}
	if k.peer != AnySource && k.comm.members[k.peer].hasWireLimits {
		return k.checkWholeWords(&k.comm.proc.peers[match.Source])
	}
	return nil
}

// match checks the source and tag of a receive or a probe and stores them in m.
func (k *call) match(m *mpe.Match) error {
	comm := k.comm
	if comm == nil || comm.freed.Load() {
		return k.check()
	}
	m.Source, m.Tag, m.Comm = mpe.AnySource, k.tag, comm.number
	if k.tag < 0 || k.tag > TagUB {
		if k.tag != AnyTag {
			return k.failf(ErrTag, "a tag is 0 to %d, or MPI_ANY_TAG", TagUB)
		}
		m.Tag = mpe.AnyTag
	}
	if k.peer == AnySource {
		return nil
	}
	if k.peer < 0 || k.peer >= len(comm.members) {
		return k.rankError(k.peer)
	}
	to := comm.members[k.peer]
	m.Source = int(to.worldRank)
	if p := &comm.proc.peers[to.worldRank]; to.hasWireLimits && p.SmallTags && k.tag > maxSmallTag {
		return k.tagError(p)
	}
	return nil
}

// maxSmallTag is the largest tag that profile v0.9 supports, because its headers have one byte for the tag.
const maxSmallTag = 255

func (k *call) tagError(p *mpe.PeerInfo) error {
	return k.failf(ErrTag, "the peer's wire (profile %s) carries tags of 0 to %d", p.Profile, maxSmallTag)
}

// checkWholeWords rejects a length that the size field of the peer's wire, in 32-bit words, cannot express.
func (k *call) checkWholeWords(p *mpe.PeerInfo) error {
	if p.Words && len(k.bytes)%protocol.WordLen != 0 {
		return k.failf(ErrCount, "%d bytes: the peer's wire (profile %s) carries whole 32-bit words; use a count "+
			"that gives a multiple of %d bytes",
			len(k.bytes), p.Profile, protocol.WordLen)
	}
	return nil
}

// wait waits for an operation and frees it. After a receive, it stores the status of the message in to.
func (k *call) wait(ctx context.Context, op mpe.Op, to *Status) error {
	st, err := op.Await(ctx)
	err = k.finish(to, st, err)
	op.Free()
	return err
}

// finish translates the outcome that the device reports for an operation.
func (k *call) finish(to *Status, st *mpe.Status, err error) error {
	*to = emptyStatus
	switch {
	case err != nil:
		return k.finishFailed(to, st, err)
	case k.isSend(), k.kind == 0:
		return nil
	}
	if err := k.status(to, st); err != nil {
		return err
	}
	k.unpack(to.Bytes)
	return nil
}

// finishFailed translates the outcome of an operation that failed or was cancelled.
func (k *call) finishFailed(to *Status, st *mpe.Status, err error) error {
	if errors.Is(err, mpe.ErrCancelled) {
		to.Cancelled = true
		return nil
	}
	class := deviceErrorClass(err)
	if class == ErrTruncate && !k.isSend() && k.status(to, st) == nil {
		to.Bytes = int64(len(k.bytes)) // the beginning has been received
		k.unpack(to.Bytes)
	}
	return k.error(class, err)
}

// status translates the status of a received or probed message.
func (k *call) status(to *Status, st *mpe.Status) error {
	comm := k.comm
	if st.Peer < 0 || st.Peer >= len(comm.worldToLocal) || comm.worldToLocal[st.Peer] == Undefined {
		return k.failf(ErrIntern, "the device gave a message from rank %d of the world, which is not a member", st.Peer)
	}
	to.Source, to.Tag, to.Bytes = int(comm.worldToLocal[st.Peer]), st.Tag, statusBytes(st)
	if k.claim != 0 {
		to.Tag = k.tag
	}
	if k.tag != AnyTag && comm.proc.noTags && comm.proc.peers[st.Peer].NoTags {
		to.Tag = k.tag
	}
	return nil
}
