package attach

import (
	"encoding/binary"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The bodies of frames. What makes one makes the frame's header, too.

const (
	helloLen = 20
	// helloVersionLen is the length of HELLO up to its version, which is the same in every version.
	helloVersionLen = 12
	welcomeLen      = 40
	startLen        = 32
	placeLen        = 8 // of START: where its payload lies
	probeLen        = 24
	idLen           = 8
	// longestHello is what HELLO of a later version may grow to.
	longestHello = 256
)

// flagRings of HELLO asks for memory with rings, and flagArena for an arena behind them.
const (
	flagRings = 1 << iota
	flagArena
)

// hello asks for a rank.
type hello struct {
	version uint32
	rank    int32
	flags   uint32
}

func helloFrame(h hello) []byte {
	b := appendHeader(nil, frameHello, helloLen)
	b = append(b, magic...)
	b = order.AppendUint32(b, h.version)
	b = order.AppendUint32(b, uint32(h.rank))
	return order.AppendUint32(b, h.flags)
}

// readHello reads the first frame. What follows the fields of this version is
// left to later ones.
func (r *frameReader) readHello() (h hello, err error) {
	// The header is examined as a whole: its length is nonsense if this is
	// another protocol.
	b, err := r.br.Peek(frameHeaderLen)
	if err != nil {
		return h, err
	}
	switch {
	case isHello(frameType(b[4]), order.Uint32(b)):
	case isHello(frameType(b[4]), binary.BigEndian.Uint32(b)):
		return h, byteOrder("length", order.Uint32(b))
	default:
		return h, violation("the first frame is not HELLO: this is the socket by which programs attach to ranks of zrlmpid")
	}
	if err := r.next(); err != nil {
		return h, err
	}
	if b, err = r.take(helloVersionLen); err != nil {
		return h, err
	}
	if string(b[:8]) != magic {
		return h, violation("HELLO begins with %q and not with %q", b[:8], magic)
	}
	switch h.version = order.Uint32(b[8:]); h.version {
	case Version:
	case bits.ReverseBytes32(Version):
		return h, byteOrder("version", h.version)
	default:
		return h, refused(WrongVersion, "the program speaks version %d of the attach protocol, and the daemon version %d: "+
			"use a library and a daemon of the same release", h.version, Version)
	}
	if b, err = r.take(helloLen - helloVersionLen); err != nil {
		return h, err
	}
	h.rank, h.flags = int32(order.Uint32(b)), order.Uint32(b[4:])
	return h, r.skip()
}

// isHello reports whether a frame's header can be that of HELLO, of any version.
func isHello(t frameType, length uint32) bool {
	return t == frameHello && length >= helloVersionLen && length <= longestHello
}

// byteOrder is the violation of a program whose HELLO has its numbers in the other byte order.
func byteOrder(field string, value uint32) error {
	return violation("HELLO has its %s, %d, with the most significant byte first: numbers of the attach protocol have the least significant byte first",
		field, bits.ReverseBytes32(value))
}

// Limits are what the daemon grants a program.
type Limits struct {
	// Operations is how many operations may be under way, probes included.
	Operations int
	// Bytes is how much payload all of them may have: the messages being sent
	// and the buffers of receives.
	Bytes int64
}

// welcome grants a rank. size PEER frames follow.
type welcome struct {
	version, rank, size, chunk uint32
	limits                     Limits
	flags                      uint32
	// ring is the length of each ring in bytes, or 0 if frames go through the socket, and arena
	// that of the arena, which is there if asked is set: the program has asked for one.
	ring, arena uint64
	asked       bool
}

// flagOversubscribed of WELCOME says that the host has more ranks and programs than cores.
const flagOversubscribed = 1

func appendWelcome(b []byte, w welcome) []byte {
	n := welcomeLen
	if w.asked {
		n += placeLen
	}
	b = appendHeader(b, frameWelcome, n)
	for _, v := range [...]uint32{w.version, w.rank, w.size, w.chunk, uint32(w.limits.Operations), w.flags} {
		b = order.AppendUint32(b, v)
	}
	b = order.AppendUint64(b, uint64(w.limits.Bytes))
	b = order.AppendUint64(b, w.ring)
	if w.asked {
		b = order.AppendUint64(b, w.arena)
	}
	return b
}

func (r *frameReader) readWelcome() (w welcome, err error) {
	n := welcomeLen
	if w.asked = r.left > n; w.asked {
		n += placeLen
	}
	b, err := r.take(n)
	if err != nil {
		return w, err
	}
	if w.asked {
		w.arena = order.Uint64(b[welcomeLen:])
	}
	w.version, w.rank, w.size, w.chunk = order.Uint32(b), order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])
	w.limits.Operations, w.limits.Bytes = int(order.Uint32(b[16:])), int64(order.Uint64(b[24:]))
	w.flags, w.ring = order.Uint32(b[20:]), order.Uint64(b[32:])
	switch {
	case w.version != Version:
		err = violation("the daemon speaks version %d of the attach protocol, and the program version %d: use a library and a daemon of the same release", w.version, Version)
	case w.rank >= w.size:
		err = violation("WELCOME to rank %d of %d", w.rank, w.size)
	case w.chunk == 0 || w.chunk > chunkLen:
		err = violation("WELCOME with pieces of %d bytes", w.chunk)
	}
	return w, err
}

// peerFlags are the bits of PEER, in order.
func peerFlags(p *mpe.PeerInfo) []*bool {
	return []*bool{&p.Words, &p.NoTags, &p.SmallTags, &p.NoComms, &p.NoLength, &p.NoEmpty}
}

func appendPeer(b []byte, rank int, p mpe.PeerInfo) []byte {
	var flags uint32
	for i, set := range peerFlags(&p) {
		if *set {
			flags |= 1 << i
		}
	}
	texts := [...]string{p.Profile, p.Kind, p.Address}
	length := 8
	for i := range texts {
		texts[i] = texts[i][:min(len(texts[i]), 255)]
		length += 1 + len(texts[i])
	}
	b = appendHeader(b, framePeer, length)
	b = order.AppendUint32(b, uint32(rank))
	b = order.AppendUint32(b, flags)
	for _, s := range texts {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

func (r *frameReader) readPeer(rank int) (p mpe.PeerInfo, err error) {
	b, err := r.take(8)
	if err != nil {
		return p, err
	}
	if got := order.Uint32(b); got != uint32(rank) {
		return p, violation("PEER of rank %d where rank %d was due", got, rank)
	}
	flags := order.Uint32(b[4:])
	for i, set := range peerFlags(&p) {
		*set = flags&(1<<i) != 0
	}
	for _, s := range []*string{&p.Profile, &p.Kind, &p.Address} {
		if b, err = r.take(1); err != nil {
			return p, err
		}
		if b, err = r.take(int(b[0])); err != nil {
			return p, err
		}
		*s = string(b)
	}
	return p, nil
}

// The kinds of operations that package mpe has none for.
const (
	opProbe mpe.OpKind = 254
	opCall  mpe.OpKind = 255
)

// start posts an operation. Payload of a send follows in the frame, unless it is placed: then it
// is in the arena at place, and so will be that of a receive. Buf of the operation does not travel.
type start struct {
	id uint64
	mpe.Operation
	length uint64
	placed bool
	place  uint64
}

const (
	flagAnyDatatype = 1 << iota
	flagPlaced
)

// appendStart appends START, of whose payload piece bytes follow.
func appendStart(b []byte, s *start, piece int) []byte {
	n := startLen + piece
	if s.placed {
		n += placeLen
	}
	b = appendHeader(b, frameStart, n)
	b = order.AppendUint64(b, s.id)
	b = append(b, byte(s.Kind), byte(s.Datatype), bit(s.AnyDatatype, flagAnyDatatype)|bit(s.placed, flagPlaced), 0)
	b = appendMatch(b, s.Peer, s.Tag, s.Comm)
	b = order.AppendUint64(b, s.length)
	if s.placed {
		b = order.AppendUint64(b, s.place)
	}
	return b
}

// appendMatch appends what START and PROBE are matched by, which readMatch reads.
func appendMatch(b []byte, peer, tag int, comm uint32) []byte {
	b = order.AppendUint32(b, uint32(peer))
	b = order.AppendUint32(b, uint32(tag))
	return order.AppendUint32(b, comm)
}

func readMatch(b []byte) (peer, tag int, comm uint32) {
	return int(int32(order.Uint32(b))), int(int32(order.Uint32(b[4:]))), order.Uint32(b[8:])
}

// readStart reads START up to its payload.
func (r *frameReader) readStart() (s start, err error) {
	b, err := r.take(startLen)
	if err != nil {
		return s, err
	}
	s.id, s.Kind, s.Datatype, s.length = order.Uint64(b), mpe.OpKind(b[8]), protocol.Datatype(b[9]), order.Uint64(b[24:])
	s.AnyDatatype, s.placed = b[10]&flagAnyDatatype != 0, b[10]&flagPlaced != 0
	s.Peer, s.Tag, s.Comm = readMatch(b[12:])
	switch {
	case s.Kind < mpe.OpSend || s.Kind > mpe.OpRecv:
		err = violation("START of kind %d: 1 is send, 2 synchronous send, 3 receive", s.Kind)
	case s.Datatype > protocol.Float:
		err = violation("START with datatype %d: 0 is int, 1 is float", s.Datatype)
	case b[10]&^(flagAnyDatatype|flagPlaced) != 0 || b[11] != 0:
		err = violation("START with flags %#02x%02x", b[11], b[10])
	case s.placed:
		if b, err = r.take(placeLen); err == nil {
			s.place = order.Uint64(b)
		}
	case s.Kind == mpe.OpRecv && r.left > 0:
		err = violation("START of a receive is followed by %d bytes of payload", r.left)
	case uint64(r.left) > s.length || r.left > chunkLen:
		err = violation("START of a send of %d bytes is followed by %d bytes of payload", s.length, r.left)
	}
	return s, err
}

// appendData appends DATA, whose payload of piece bytes follows.
func appendData(b []byte, id uint64, piece int) []byte {
	b = appendHeader(b, frameData, idLen+piece)
	return order.AppendUint64(b, id)
}

// readID reads the id that DATA, CANCEL and ABORT begin with.
func (r *frameReader) readID() (uint64, error) {
	b, err := r.take(idLen)
	if err != nil {
		return 0, err
	}
	return order.Uint64(b), nil
}

func cancelFrame(id uint64) []byte {
	return order.AppendUint64(appendHeader(nil, frameCancel, idLen), id)
}

// abortFrame returns the frame that takes an operation back because of cause.
func abortFrame(id uint64, cause error) []byte {
	text := clip(cause.Error())
	b := appendHeader(nil, frameAbort, idLen+8+len(text))
	b = order.AppendUint64(b, id)
	return append(order.AppendUint64(b, sentinelSet(cause)), text...)
}

func (r *frameReader) readAbort() (id uint64, cause error, err error) {
	if id, err = r.readID(); err != nil {
		return 0, nil, err
	}
	b, err := r.take(8)
	if err != nil {
		return 0, nil, err
	}
	set := order.Uint64(b)
	text, err := r.text()
	return id, &Error{text: text, set: set}, err
}

// probe probes for a message.
type probe struct {
	id uint64
	mpe.Match
	wait bool
}

const (
	flagWait = 1 << iota
	flagClaim
)

func appendProbe(b []byte, p *probe) []byte {
	b = appendHeader(b, frameProbe, probeLen)
	b = order.AppendUint64(b, p.id)
	b = append(b, bit(p.wait, flagWait)|bit(p.Claim, flagClaim), 0, 0, 0)
	return appendMatch(b, p.Source, p.Tag, p.Comm)
}

func (r *frameReader) readProbe() (p probe, err error) {
	b, err := r.take(probeLen)
	if err != nil {
		return p, err
	}
	if b[8]&^(flagWait|flagClaim) != 0 {
		return p, violation("PROBE with flags %#02x", b[8])
	}
	p.id, p.wait, p.Claim = order.Uint64(b), b[8]&flagWait != 0, b[8]&flagClaim != 0
	p.Source, p.Tag, p.Comm = readMatch(b[12:])
	if p.Comm == mpe.ClaimComm {
		return p, violation("PROBE in communicator %d, which has the messages of matched probes", p.Comm)
	}
	return p, nil
}

func bit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// AnyRank asks for the lowest rank that no program has.
const AnyRank = -1
