package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	HelloLen = 20
	// helloVersionLen is the length of HELLO up to and including its version. It is the same in all versions.
	helloVersionLen = 12
	welcomeLen      = 40
	startLen        = 32
	arenaOffsetLen  = 8 // offset of the payload, in START
	ProbeLen        = 24
	IDLen           = 8
	// maxHelloLen is the maximum length of HELLO in later versions.
	maxHelloLen = 256
)

// FlagRings in HELLO requests memory with rings. FlagArena requests an arena after the rings.
const (
	FlagRings = 1 << iota
	FlagArena
)

// Hello contains the fields of HELLO, which requests a rank.
type Hello struct {
	Version uint32
	Rank    int32
	Flags   uint32
}

// HelloFrame returns a HELLO frame.
func HelloFrame(h Hello) []byte {
	b := AppendHeader(nil, FrameHello, HelloLen)
	b = append(b, magic...)
	b = Order.AppendUint32(b, h.Version)
	b = Order.AppendUint32(b, uint32(h.Rank))
	return Order.AppendUint32(b, h.Flags)
}

// ReadHello reads the first frame. It ignores fields that only later versions have.
func (r *Reader) ReadHello() (h Hello, err error) {
	// Check the header as a whole: in another protocol, the length may have any value.
	b, err := r.br.Peek(FrameHeaderLen)
	if err != nil {
		return h, err
	}
	switch {
	case isHello(FrameType(b[4]), Order.Uint32(b)):
	case isHello(FrameType(b[4]), binary.BigEndian.Uint32(b)):
		return h, byteOrder("length", Order.Uint32(b))
	default:
		return h, Violationf("the first frame is not HELLO: this is the socket where programs attach to ranks " +
			"of zrlmpid")
	}
	if err := r.Next(); err != nil {
		return h, err
	}
	if b, err = r.NextBytes(helloVersionLen); err != nil {
		return h, err
	}
	if string(b[:8]) != magic {
		return h, Violationf("HELLO begins with %q instead of %q", b[:8], magic)
	}
	switch h.Version = Order.Uint32(b[8:]); h.Version {
	case Version:
	case bits.ReverseBytes32(Version):
		return h, byteOrder("version", h.Version)
	default:
		return h, NewRefusal(WrongVersion,
			"the program speaks version %d of the attach protocol, and the daemon version %d: "+
				"use a library and a daemon of the same release", h.Version, Version)
	}
	if b, err = r.NextBytes(HelloLen - helloVersionLen); err != nil {
		return h, err
	}
	h.Rank, h.Flags = int32(Order.Uint32(b)), Order.Uint32(b[4:])
	return h, r.Skip()
}

// isHello reports whether a frame's header may be the header of a HELLO of any version.
func isHello(t FrameType, length uint32) bool {
	return t == FrameHello && length >= helloVersionLen && length <= maxHelloLen
}

// byteOrder returns the error for a HELLO whose numbers are in the wrong byte order.
func byteOrder(field string, value uint32) error {
	return Violationf("HELLO has its %s, %d, in big-endian byte order: the attach protocol uses little-endian numbers",
		field, bits.ReverseBytes32(value))
}

// Limits are the limits granted to a program.
type Limits struct {
	// Operations is the maximum number of operations in progress, including probes.
	Operations int
	// Bytes is the maximum total payload of all operations: the messages being sent and the buffers of
	// receives.
	Bytes int64
}

// Welcome contains the fields of WELCOME, which grants a rank. WELCOME is followed by one PEER frame for each
// of Size ranks.
type Welcome struct {
	Version, Rank, Size, Chunk uint32
	Limits                     Limits
	Flags                      uint32
	// Ring is the length of each ring in bytes, or 0 if frames are sent through the socket. Arena is the length
	// of the arena. WELCOME contains the field Arena only if Asked is set, which means that the program has
	// requested an arena.
	Ring, Arena uint64
	HasArena    bool
}

// FlagOversubscribed in WELCOME means that the host has more ranks and programs than cores.
const FlagOversubscribed = 1

func AppendWelcome(b []byte, w Welcome) []byte {
	n := welcomeLen
	if w.HasArena {
		n += arenaOffsetLen
	}
	b = AppendHeader(b, FrameWelcome, n)
	for _, v := range [...]uint32{w.Version, w.Rank, w.Size, w.Chunk, uint32(w.Limits.Operations), w.Flags} {
		b = Order.AppendUint32(b, v)
	}
	b = Order.AppendUint64(b, uint64(w.Limits.Bytes))
	b = Order.AppendUint64(b, w.Ring)
	if w.HasArena {
		b = Order.AppendUint64(b, w.Arena)
	}
	return b
}

func (r *Reader) ReadWelcome() (w Welcome, err error) {
	n := welcomeLen
	if w.HasArena = r.Remaining > n; w.HasArena {
		n += arenaOffsetLen
	}
	b, err := r.NextBytes(n)
	if err != nil {
		return w, err
	}
	if w.HasArena {
		w.Arena = Order.Uint64(b[welcomeLen:])
	}
	w.Version, w.Rank, w.Size, w.Chunk = Order.Uint32(b), Order.Uint32(b[4:]), Order.Uint32(b[8:]), Order.Uint32(b[12:])
	w.Limits.Operations, w.Limits.Bytes = int(Order.Uint32(b[16:])), int64(Order.Uint64(b[24:]))
	w.Flags, w.Ring = Order.Uint32(b[20:]), Order.Uint64(b[32:])
	switch {
	case w.Version != Version:
		err = Violationf("the daemon speaks version %d of the attach protocol, and the program version %d: use a "+
			"library and a daemon of the same release", w.Version, Version)
	case w.Rank >= w.Size:
		err = Violationf("WELCOME to rank %d of %d", w.Rank, w.Size)
	case w.Chunk == 0 || w.Chunk > ChunkLen:
		err = Violationf("WELCOME with pieces of %d bytes", w.Chunk)
	}
	return w, err
}

// peerFlags returns the flags of PEER in the order of their bits.
func peerFlags(p *mpe.PeerInfo) []*bool {
	return []*bool{&p.Words, &p.NoTags, &p.SmallTags, &p.NoComms, &p.NoLength, &p.NoEmpty}
}

func AppendPeer(b []byte, rank int, p mpe.PeerInfo) []byte {
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
	b = AppendHeader(b, FramePeer, length)
	b = Order.AppendUint32(b, uint32(rank))
	b = Order.AppendUint32(b, flags)
	for _, s := range texts {
		b = append(append(b, byte(len(s))), s...)
	}
	return b
}

// ReadPeer reads PEER, which must describe the given rank.
func (r *Reader) ReadPeer(rank int) (p mpe.PeerInfo, err error) {
	b, err := r.NextBytes(8)
	if err != nil {
		return p, err
	}
	if got := Order.Uint32(b); got != uint32(rank) {
		return p, Violationf("PEER of rank %d instead of rank %d", got, rank)
	}
	flags := Order.Uint32(b[4:])
	for i, set := range peerFlags(&p) {
		*set = flags&(1<<i) != 0
	}
	for _, s := range []*string{&p.Profile, &p.Kind, &p.Address} {
		if b, err = r.NextBytes(1); err != nil {
			return p, err
		}
		if b, err = r.NextBytes(int(b[0])); err != nil {
			return p, err
		}
		*s = string(b)
	}
	return p, nil
}

// Kinds of operations in addition to those of package mpe.
const (
	OpProbe mpe.OpKind = 254
	OpCall  mpe.OpKind = 255
)

// Start contains the fields of START, which posts an operation. The payload of a send follows in the frame or,
// if Placed is set, is in the arena at offset Place. If Placed is set, the payload of a receive is also stored
// at that offset. Operation.Buf is not encoded.
type Start struct {
	ID uint64
	mpe.Operation
	Length      uint64
	InArena     bool
	ArenaOffset uint64
	// Wait and Claim are only encoded in PROBE, which has no payload. Wait means that the probe waits for a
	// message; Claim means that it removes the message from matching.
	Wait, Claim bool
}

const (
	FlagAnyDatatype = 1 << iota
	flagPlaced
)

// AppendStart appends START. The caller must then append piece bytes of payload.
func AppendStart(b []byte, s *Start, piece int) []byte {
	n := startLen + piece
	if s.InArena {
		n += arenaOffsetLen
	}
	b = AppendHeader(b, FrameStart, n)
	b = Order.AppendUint64(b, s.ID)
	b = append(b, byte(s.Kind), byte(s.Datatype), flagBit(s.AnyDatatype, FlagAnyDatatype)|flagBit(s.InArena, flagPlaced), 0)
	b = appendMatch(b, s.Peer, s.Tag, s.Comm)
	b = Order.AppendUint64(b, s.Length)
	if s.InArena {
		b = Order.AppendUint64(b, s.ArenaOffset)
	}
	return b
}

// appendMatch appends those fields of START and PROBE that determine matching. readMatch is its inverse.
func appendMatch(b []byte, peer, tag int, comm uint32) []byte {
	b = Order.AppendUint32(b, uint32(peer))
	b = Order.AppendUint32(b, uint32(tag))
	return Order.AppendUint32(b, comm)
}

func readMatch(b []byte) (peer, tag int, comm uint32) {
	return int(int32(Order.Uint32(b))), int(int32(Order.Uint32(b[4:]))), Order.Uint32(b[8:])
}

// ReadStart reads START up to its payload.
func (r *Reader) ReadStart() (s Start, err error) {
	b, err := r.NextBytes(startLen)
	if err != nil {
		return s, err
	}
	s.ID, s.Kind, s.Datatype, s.Length = Order.Uint64(b), mpe.OpKind(b[8]), protocol.Datatype(b[9]),
		Order.Uint64(b[24:])
	s.AnyDatatype, s.InArena = b[10]&FlagAnyDatatype != 0, b[10]&flagPlaced != 0
	s.Peer, s.Tag, s.Comm = readMatch(b[12:])
	switch {
	case s.Kind < mpe.OpSend || s.Kind > mpe.OpRecv:
		err = Violationf("START of kind %d: 1 is send, 2 synchronous send, 3 receive", s.Kind)
	case s.Datatype > protocol.Float:
		err = Violationf("START with datatype %d: 0 is int, 1 is float", s.Datatype)
	case b[10]&^(FlagAnyDatatype|flagPlaced) != 0 || b[11] != 0:
		err = Violationf("START with flags %#02x%02x", b[11], b[10])
	case s.InArena:
		if b, err = r.NextBytes(arenaOffsetLen); err == nil {
			s.ArenaOffset = Order.Uint64(b)
		}
	case s.Kind == mpe.OpRecv && r.Remaining > 0:
		err = Violationf("START of a receive is followed by %d bytes of payload", r.Remaining)
	case uint64(r.Remaining) > s.Length || r.Remaining > ChunkLen:
		err = Violationf("START of a send of %d bytes is followed by %d bytes of payload", s.Length, r.Remaining)
	}
	return s, err
}

// AppendID appends the header and id of DATA, REDUCE or CANCEL for an operation. The caller must then append
// piece bytes of payload.
func AppendID(b []byte, t FrameType, id uint64, piece int) []byte {
	return Order.AppendUint64(AppendHeader(b, t, IDLen+piece), id)
}

// ReadID reads the id at the beginning of DATA, REDUCE, CANCEL and ABORT.
func (r *Reader) ReadID() (uint64, error) {
	b, err := r.NextBytes(IDLen)
	if err != nil {
		return 0, err
	}
	return Order.Uint64(b), nil
}

// AbortFrame returns an ABORT frame for an operation that is aborted because of cause.
func AbortFrame(id uint64, cause error) []byte {
	text := ClipText(cause.Error())
	b := AppendHeader(nil, FrameAbort, IDLen+8+len(text))
	b = Order.AppendUint64(b, id)
	return append(Order.AppendUint64(b, sentinelSet(cause)), text...)
}

func (r *Reader) ReadAbort() (id uint64, cause error, err error) {
	if id, err = r.ReadID(); err != nil {
		return 0, nil, err
	}
	b, err := r.NextBytes(8)
	if err != nil {
		return 0, nil, err
	}
	set := Order.Uint64(b)
	text, err := r.Text()
	return id, &Error{Text: text, SentinelSet: set}, err
}

const (
	flagWait = 1 << iota
	flagClaim
)

func AppendProbe(b []byte, p *Start) []byte {
	b = AppendHeader(b, FrameProbe, ProbeLen)
	b = Order.AppendUint64(b, p.ID)
	b = append(b, flagBit(p.Wait, flagWait)|flagBit(p.Claim, flagClaim), 0, 0, 0)
	return appendMatch(b, p.Peer, p.Tag, p.Comm)
}

func (r *Reader) ReadProbe() (p Start, err error) {
	b, err := r.NextBytes(ProbeLen)
	if err != nil {
		return p, err
	}
	if b[8]&^(flagWait|flagClaim) != 0 {
		return p, Violationf("PROBE with flags %#02x", b[8])
	}
	p.ID, p.Kind, p.Wait, p.Claim = Order.Uint64(b), OpProbe, b[8]&flagWait != 0, b[8]&flagClaim != 0
	p.Peer, p.Tag, p.Comm = readMatch(b[12:])
	if p.Comm == mpe.ClaimComm {
		return p, Violationf("PROBE in communicator %d, which is reserved for matched probes", p.Comm)
	}
	return p, nil
}

func flagBit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// AnyRank requests the lowest rank that is not held by another program.
const AnyRank = -1
