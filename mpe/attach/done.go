package attach

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// doneLen is the length in bytes of what DONE begins with.
const doneLen = 96

const (
	flagError = 1 << iota
	flagFound
)

// done ends an operation or answers a probe.
type done struct {
	id    uint64
	found bool
	// stored is the payload in the DATA frames before it and in this frame.
	stored uint64
	status mpe.Status
	err    error
}

// appendDone appends DONE, of whose payload piece bytes follow.
func appendDone(b []byte, d *done, piece int) []byte {
	var failure []byte
	flags := bit(d.found, flagFound)
	if d.err != nil {
		failure = encodeError(d.err)
		flags |= flagError
	}
	b = appendHeader(b, frameDone, doneLen+len(failure)+piece)
	b = order.AppendUint64(b, d.id)
	b = append(b, flags, 0, 0, 0)
	b = order.AppendUint32(b, uint32(len(failure)))
	b = order.AppendUint64(b, d.stored)
	s := &d.status
	b = order.AppendUint32(b, uint32(s.Peer))
	b = append(b, byte(s.Datatype), bit(s.Send, 1), 0, 0)
	b = order.AppendUint32(b, uint32(s.Tag))
	b = order.AppendUint32(b, s.Comm)
	b = order.AppendUint64(b, uint64(s.Bytes))
	b = order.AppendUint32(b, s.Words)
	b = order.AppendUint32(b, uint32(s.Phases.Retransmissions))
	for _, at := range phases(s) {
		b = order.AppendUint64(b, uint64(*at))
	}
	return append(b, failure...)
}

// phases are the instants of a status, in the order of DONE.
func phases(s *mpe.Status) [5]*time.Duration {
	p := &s.Phases
	return [...]*time.Duration{&p.Start, &p.Request, &p.Clear, &p.Data, &p.Ack}
}

// maxFailure is the longest error in DONE, in bytes.
const maxFailure = 12 + maxText + maxDetails

// readDone reads DONE up to its payload.
func (r *frameReader) readDone(d *done) error {
	b, err := r.take(doneLen)
	if err != nil {
		return err
	}
	flags, failure := b[8], int(order.Uint32(b[12:]))
	d.id, d.found, d.stored, d.err = order.Uint64(b), flags&flagFound != 0, order.Uint64(b[16:]), nil
	s := &d.status
	s.Peer, s.Datatype, s.Send = int(int32(order.Uint32(b[24:]))), protocol.Datatype(b[28]), b[29] != 0
	s.Tag, s.Comm = int(int32(order.Uint32(b[32:]))), order.Uint32(b[36:])
	s.Bytes, s.Words = int64(order.Uint64(b[40:])), order.Uint32(b[48:])
	s.Phases.Retransmissions = int(order.Uint32(b[52:]))
	s.Claim = 0 // the caller knows whether it is a matched probe's
	for i, at := range phases(s) {
		*at = time.Duration(order.Uint64(b[56+8*i:]))
	}
	switch {
	case flags&flagError == 0 && failure != 0:
		return violation("DONE without an error has %d bytes of one", failure)
	case flags&flagError == 0:
		return nil
	case failure > maxFailure && failure <= r.left:
		return violation("DONE has an error of %d bytes: the longest has %d", failure, maxFailure)
	}
	if b, err = r.take(failure); err != nil {
		return err
	}
	d.err, err = parseError(b)
	return err
}
