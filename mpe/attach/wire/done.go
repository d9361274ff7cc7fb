package wire

import (
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// DoneLen is the length of the fixed fields in a DONE frame, in bytes.
const DoneLen = 96

const (
	flagError = 1 << iota
	flagFound
)

// Done contains the fields of DONE, which ends an operation or answers a probe.
type Done struct {
	ID    uint64
	Found bool
	// Stored is the number of payload bytes sent in this DONE frame and in the DATA frames before it.
	Stored uint64
	Status mpe.Status
	Err    error
}

// AppendDone appends a DONE frame without its payload. The caller must then append piece bytes of payload.
func AppendDone(b []byte, done *Done, piece int) []byte {
	var failure []byte
	flags := flagBit(done.Found, flagFound)
	if done.Err != nil {
		failure = encodeError(done.Err)
		flags |= flagError
	}
	b = AppendHeader(b, FrameDone, DoneLen+len(failure)+piece)
	b = Order.AppendUint64(b, done.ID)
	b = append(b, flags, 0, 0, 0)
	b = Order.AppendUint32(b, uint32(len(failure)))
	b = Order.AppendUint64(b, done.Stored)
	status := &done.Status
	b = Order.AppendUint32(b, uint32(status.Peer))
	b = append(b, byte(status.Datatype), flagBit(status.Send, 1), 0, 0)
	b = Order.AppendUint32(b, uint32(status.Tag))
	b = Order.AppendUint32(b, status.Comm)
	b = Order.AppendUint64(b, uint64(status.Bytes))
	b = Order.AppendUint32(b, status.Words)
	b = Order.AppendUint32(b, uint32(status.Phases.Retransmissions))
	for _, at := range phases(status) {
		b = Order.AppendUint64(b, uint64(*at))
	}
	return append(b, failure...)
}

// phases returns pointers to the instants in a status, in the order in which a DONE frame contains them.
func phases(s *mpe.Status) [5]*time.Duration {
	p := &s.Phases
	return [...]*time.Duration{&p.Start, &p.Request, &p.Clear, &p.Data, &p.Ack}
}

// maxErrorLen is the maximum length in bytes of an error in DONE.
const maxErrorLen = 12 + MaxText + maxDetails

// ReadDone reads DONE up to its payload.
func (r *Reader) ReadDone(done *Done) error {
	b, err := r.NextBytes(DoneLen)
	if err != nil {
		return err
	}
	flags, failure := b[8], int(Order.Uint32(b[12:]))
	done.ID, done.Found, done.Stored, done.Err = Order.Uint64(b), flags&flagFound != 0, Order.Uint64(b[16:]), nil
	status := &done.Status
	status.Peer, status.Datatype, status.Send = int(int32(Order.Uint32(b[24:]))), protocol.Datatype(b[28]), b[29] != 0
	status.Tag, status.Comm = int(int32(Order.Uint32(b[32:]))), Order.Uint32(b[36:])
	status.Bytes, status.Words = int64(Order.Uint64(b[40:])), Order.Uint32(b[48:])
	status.Phases.Retransmissions = int(Order.Uint32(b[52:]))
	status.Claim = 0 // the caller sets it for a matched probe
	for i, at := range phases(status) {
		*at = time.Duration(Order.Uint64(b[56+8*i:]))
	}
	switch {
	case flags&flagError == 0 && failure != 0:
		return Violationf("DONE without an error has %d bytes of error text", failure)
	case flags&flagError == 0:
		return nil
	case failure > maxErrorLen && failure <= r.Remaining:
		return Violationf("DONE has an error of %d bytes: at most %d are allowed", failure, maxErrorLen)
	}
	if b, err = r.NextBytes(failure); err != nil {
		return err
	}
	done.Err, err = parseError(b)
	return err
}
