package wire

import (
	"encoding/binary"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	HelloLen = 20
	// helloVersionLen is the length of a HELLO frame up to and including its version field. It is the same in all
	// versions of the protocol.
	helloVersionLen = 12
	welcomeLen      = 40
	startLen        = 32
	arenaOffsetLen  = 8 // offset of the payload, in START
	ProbeLen        = 24
	IDLen           = 8
	// maxHelloLen is the maximum length of a HELLO frame in later versions of the protocol.
	maxHelloLen = 256
)

// FlagRings in HELLO requests shared memory with rings. FlagArena additionally requests an arena after the rings.
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
func (r *Reader) ReadHello() (hello Hello, err error) {
	// Check the header as a whole: in another protocol, the length may have any value.
	b, err := r.br.Peek(FrameHeaderLen)
	if err != nil {
		return hello, err
	}
	switch {
	case isHello(FrameType(b[4]), Order.Uint32(b)):
	case isHello(FrameType(b[4]), binary.BigEndian.Uint32(b)):
		return hello, byteOrder("length", Order.Uint32(b))
	default:
		return hello, Violationf("the first frame is not HELLO: this is the socket where programs attach to ranks " +
			"of zrlmpid")
	}
	if err := r.Next(); err != nil {
		return hello, err
	}
	if b, err = r.NextBytes(helloVersionLen); err != nil {
		return hello, err
	}
	if string(b[:8]) != magic {
		return hello, Violationf("HELLO begins with %q instead of %q", b[:8], magic)
	}
	switch hello.Version = Order.Uint32(b[8:]); hello.Version {
	case Version:
	case bits.ReverseBytes32(Version):
		return hello, byteOrder("version", hello.Version)
	default:
		return hello, NewRefusal(WrongVersion,
			"the program speaks version %d of the attach protocol, and the daemon version %d: "+
				"use a library and a daemon of the same release", hello.Version, Version)
	}
	if b, err = r.NextBytes(HelloLen - helloVersionLen); err != nil {
		return hello, err
	}
	hello.Rank, hello.Flags = int32(Order.Uint32(b)), Order.Uint32(b[4:])
	return hello, r.Skip()
}

// isHello reports whether a header may belong to a HELLO frame of any version of the protocol.
func isHello(t FrameType, length uint32) bool {
	return t == FrameHello && length >= helloVersionLen && length <= maxHelloLen
}

// byteOrder returns the error for a HELLO whose numbers have the wrong byte order.
func byteOrder(field string, value uint32) error {
	return Violationf("HELLO has its %s, %d, in big-endian byte order: the attach protocol uses little-endian numbers",
		field, bits.ReverseBytes32(value))
}

// Limits describes the limits that the daemon has granted to a program.
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
	// Ring is the length of each ring in bytes, or 0 if frames are sent through the socket. Arena is the length of the
	// arena. WELCOME contains the field Arena only if HasArena is set, which means that the program has requested an
	// arena.
	Ring, Arena uint64
	HasArena    bool
}

// FlagOversubscribed in WELCOME means that the host has more ranks and programs than cores.
const FlagOversubscribed = 1

func AppendWelcome(b []byte, welcome Welcome) []byte {
	n := welcomeLen
	if welcome.HasArena {
		n += arenaOffsetLen
	}
	b = AppendHeader(b, FrameWelcome, n)
	for _, v := range [...]uint32{welcome.Version, welcome.Rank, welcome.Size, welcome.Chunk,
		uint32(welcome.Limits.Operations), welcome.Flags} {
		b = Order.AppendUint32(b, v)
	}
	b = Order.AppendUint64(b, uint64(welcome.Limits.Bytes))
	b = Order.AppendUint64(b, welcome.Ring)
	if welcome.HasArena {
		b = Order.AppendUint64(b, welcome.Arena)
	}
	return b
}

func (r *Reader) ReadWelcome() (welcome Welcome, err error) {
	n := welcomeLen
	if welcome.HasArena = r.Remaining > n; welcome.HasArena {
		n += arenaOffsetLen
	}
	b, err := r.NextBytes(n)
	if err != nil {
		return welcome, err
	}
	if welcome.HasArena {
		welcome.Arena = Order.Uint64(b[welcomeLen:])
	}
	welcome.Version, welcome.Rank, welcome.Size, welcome.Chunk = Order.Uint32(b), Order.Uint32(b[4:]),
		Order.Uint32(b[8:]), Order.Uint32(b[12:])
	welcome.Limits.Operations, welcome.Limits.Bytes = int(Order.Uint32(b[16:])), int64(Order.Uint64(b[24:]))
	welcome.Flags, welcome.Ring = Order.Uint32(b[20:]), Order.Uint64(b[32:])
	switch {
	case welcome.Version != Version:
		err = Violationf("the daemon speaks version %d of the attach protocol, and the program version %d: use a "+
			"library and a daemon of the same release", welcome.Version, Version)
	case welcome.Rank >= welcome.Size:
		err = Violationf("WELCOME to rank %d of %d", welcome.Rank, welcome.Size)
	case welcome.Chunk == 0 || welcome.Chunk > ChunkLen:
		err = Violationf("WELCOME with pieces of %d bytes", welcome.Chunk)
	}
	return welcome, err
}

// peerFlags returns the flags of a PEER frame in the order of their bits.
func peerFlags(p *mpe.PeerInfo) []*bool {
	return []*bool{&p.Words, &p.NoTags, &p.SmallTags, &p.NoComms, &p.NoLength, &p.NoEmpty}
}

// AppendPeer appends a PEER frame: rank, flags, and three texts, each of at most 255 bytes after a byte with its
// length.
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

// ReadPeer reads a PEER frame. It returns an error unless the frame describes the given rank.
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

// Kinds of operations that frames distinguish in addition to the kinds of package mpe.
const (
	OpProbe mpe.OpKind = 254
	OpCall  mpe.OpKind = 255
)

// Start contains the fields of START, which posts an operation. The payload of a send follows in the frame or, if
// InArena is set, is in the arena at ArenaOffset. If InArena is set, the payload of a receive is also stored at that
// offset. Operation.Buf is not encoded.
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

// AppendStart appends a START frame without its payload. The caller must then append piece bytes of payload.
func AppendStart(b []byte, start *Start, piece int) []byte {
	n := startLen + piece
	if start.InArena {
		n += arenaOffsetLen
	}
	b = AppendHeader(b, FrameStart, n)
	b = Order.AppendUint64(b, start.ID)
	b = append(b, byte(start.Kind), byte(start.Datatype),
		flagBit(start.AnyDatatype, FlagAnyDatatype)|flagBit(start.InArena, flagPlaced), 0)
	b = appendMatch(b, start.Peer, start.Tag, start.Comm)
	b = Order.AppendUint64(b, start.Length)
	if start.InArena {
		b = Order.AppendUint64(b, start.ArenaOffset)
	}
	return b
}

// appendMatch appends the fields that determine matching in START and PROBE frames. Its inverse is readMatch.
func appendMatch(b []byte, peer, tag int, comm uint32) []byte {
	b = Order.AppendUint32(b, uint32(peer))
	b = Order.AppendUint32(b, uint32(tag))
	return Order.AppendUint32(b, comm)
}

// readMatch is the inverse of appendMatch. Wildcards are negative, so peer and tag are signed.
func readMatch(b []byte) (peer, tag int, comm uint32) {
	return int(int32(Order.Uint32(b))), int(int32(Order.Uint32(b[4:]))), Order.Uint32(b[8:])
}

// ReadStart reads START up to its payload.
func (r *Reader) ReadStart() (start Start, err error) {
	b, err := r.NextBytes(startLen)
	if err != nil {
		return start, err
	}
	start.ID, start.Kind, start.Datatype, start.Length = Order.Uint64(b), mpe.OpKind(b[8]), protocol.Datatype(b[9]),
		Order.Uint64(b[24:])
	start.AnyDatatype, start.InArena = b[10]&FlagAnyDatatype != 0, b[10]&flagPlaced != 0
	start.Peer, start.Tag, start.Comm = readMatch(b[12:])
	switch {
	case start.Kind < mpe.OpSend || start.Kind > mpe.OpRecv:
		err = Violationf("START of kind %d: 1 is send, 2 synchronous send, 3 receive", start.Kind)
	case start.Datatype > protocol.Float:
		err = Violationf("START with datatype %d: 0 is int, 1 is float", start.Datatype)
	case b[10]&^(FlagAnyDatatype|flagPlaced) != 0 || b[11] != 0:
		err = Violationf("START with flags %#02x%02x", b[11], b[10])
	case start.InArena:
		if b, err = r.NextBytes(arenaOffsetLen); err == nil {
			start.ArenaOffset = Order.Uint64(b)
		}
	case start.Kind == mpe.OpRecv && r.Remaining > 0:
		err = Violationf("START of a receive is followed by %d bytes of payload", r.Remaining)
	case uint64(r.Remaining) > start.Length || r.Remaining > ChunkLen:
		err = Violationf("START of a send of %d bytes is followed by %d bytes of payload", start.Length, r.Remaining)
	}
	return start, err
}

// AppendID appends the header and the operation's id of a DATA, REDUCE or CANCEL frame. The caller must then append
// piece bytes of payload.
func AppendID(b []byte, t FrameType, id uint64, piece int) []byte {
	return Order.AppendUint64(AppendHeader(b, t, IDLen+piece), id)
}

// ReadID reads the operation's id at the beginning of a DATA, REDUCE, CANCEL or ABORT frame.
func (r *Reader) ReadID() (uint64, error) {
	b, err := r.NextBytes(IDLen)
	if err != nil {
		return 0, err
	}
	return Order.Uint64(b), nil
}

// AbortFrame returns an ABORT frame, which aborts an operation for the given cause.
func AbortFrame(id uint64, cause error) []byte {
	text := ClipText(cause.Error())
	b := AppendHeader(nil, FrameAbort, IDLen+8+len(text))
	b = Order.AppendUint64(b, id)
	return append(Order.AppendUint64(b, sentinelSet(cause)), text...)
}

// ReadAbort reads ABORT. The cause is an *Error, in which errors.Is finds the program's sentinels.
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

func (r *Reader) ReadProbe() (start Start, err error) {
	b, err := r.NextBytes(ProbeLen)
	if err != nil {
		return start, err
	}
	if b[8]&^(flagWait|flagClaim) != 0 {
		return start, Violationf("PROBE with flags %#02x", b[8])
	}
	start.ID, start.Kind, start.Wait, start.Claim = Order.Uint64(b), OpProbe, b[8]&flagWait != 0, b[8]&flagClaim != 0
	start.Peer, start.Tag, start.Comm = readMatch(b[12:])
	if start.Comm == mpe.ClaimComm {
		return start, Violationf("PROBE in communicator %d, which is reserved for matched probes", start.Comm)
	}
	return start, nil
}

func flagBit(set bool, mask byte) byte {
	if set {
		return mask
	}
	return 0
}

// AnyRank requests the lowest rank that no other program holds.
const AnyRank = -1
