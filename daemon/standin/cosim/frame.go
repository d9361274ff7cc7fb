package cosim

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the frames. Each side ends if the other has another one.
const Version = 2

// Lengths in bytes. A frame is a head and a body.
const (
	HeadLen   = 8
	RecordLen = 16
	helloLen  = 16
	startLen  = 24
	stepLen   = 20
	resultLen = 48
	// What a step and an answer have more with streams of TCP.
	stepTCPLen   = 8
	resultTCPLen = 40
)

// MaxRecords is how many records a frame has at most, and MaxFrame its length with them.
const (
	MaxRecords = 4096
	MaxFrame   = HeadLen + resultLen + resultTCPLen + MaxRecords*RecordLen
)

// magic begins a hello: "ZCOS".
const magic = 0x534f435a

// Type is the type of a frame.
type Type uint8

// The types of frames. The simulator sends Hello once and Result as the answer to each Step;
// the engine sends Start once, and Steps.
const (
	TypeHello  Type = 1
	TypeStart  Type = 2
	TypeStep   Type = 3
	TypeResult Type = 4
)

func (t Type) String() string {
	switch t {
	case TypeHello:
		return "HELLO"
	case TypeStart:
		return "START"
	case TypeStep:
		return "STEP"
	case TypeResult:
		return "RESULT"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Kind is the stream on which a record was, or is to be, transferred.
type Kind uint8

// The streams of the role's interface, by the names of upstream's templates.
const (
	// KindCall is soMPIif: a call, from the role.
	KindCall Kind = iota
	// KindOut is soMPI_data: a line of a message that is sent, from the role.
	KindOut
	// KindIn is siMPI_data: a line of a message that is received, to the role.
	KindIn
	// KindFeedback is siMPIFeB: the end of a call, to the role.
	KindFeedback
	kinds = 4
)

// The streams of the network, which have the directions of those of the role, by the names of the
// shell.
const (
	// KindOutMeta is soROLE_Nrc_Udp_Meta: metadata of a datagram, from the role.
	KindOutMeta = KindCall
	// KindOutData is soNRC_Udp_Data: a line of a datagram, from the role.
	KindOutData = KindOut
	// KindInData is siNRC_Udp_Data: a line of a datagram, to the role.
	KindInData = KindIn
	// KindInMeta is siNRC_Role_Udp_Meta: metadata of a datagram, to the role.
	KindInMeta = KindFeedback
	// KindPorts is no stream but poROL_Nrc_Udp_Rx_ports, from the role, when it has changed.
	KindPorts Kind = kinds
	// KindTCP is added to the kinds of UDP for those of TCP.
	KindTCP Kind = 8
)

// Boundary is where FPGA logic is cut between simulator and engine.
type Boundary uint32

// The boundaries.
const (
	// BoundaryRole has the streams between role and MPE.
	BoundaryRole Boundary = iota
	// BoundaryNetwork has those of UDP between role and shell: the MPE is simulated as well.
	BoundaryNetwork
	// BoundaryTCP has those of TCP besides.
	BoundaryTCP
	boundaries
)

// Network reports whether it is one between role and shell.
func (b Boundary) Network() bool { return b != BoundaryRole }

// The names of the streams: of the role, of UDP and of TCP.
var kindNames = [...][kinds]string{
	{"soMPIif", "soMPI_data", "siMPI_data", "siMPIFeB"},
	{"soROLE_Nrc_Udp_Meta", "soNRC_Udp_Data", "siNRC_Udp_Data", "siNRC_Role_Udp_Meta"},
	{"soROLE_Nrc_Tcp_Meta", "soNRC_Tcp_Data", "siNRC_Tcp_Data", "siNRC_Role_Tcp_Meta"},
}

// String returns the name of a stream of the role.
func (k Kind) String() string { return BoundaryRole.stream(k) }

// stream returns the name of a stream of the boundary.
func (b Boundary) stream(k Kind) string {
	switch {
	case k < kinds && b.Network():
		return kindNames[1][k]
	case k < kinds:
		return kindNames[0][k]
	case k >= KindTCP && k < KindTCP+kinds:
		return kindNames[2][k-KindTCP]
	}
	return fmt.Sprintf("stream %d", uint8(k))
}

// Never is the cycle of what has not happened.
const Never = ^uint64(0)

// Record is one transfer on a stream: valid and ready at an edge of the clock. With a Rule, it is no transfer: the role
// breaks the rule on the stream.
type Record struct {
	// Data are the words of a line, the first in the low half. A call has its count in the low
	// and its rank in the high half; feedback is in the lowest byte.
	Data uint64
	// At is the number of cycles since the frame before, in which the simulator saw the
	// transfer; 0 in a step.
	At uint32
	// Keep says which bytes of a line are part of the message. It is the number of a call.
	Keep uint8
	// Last: the line ends its message.
	Last bool
	Kind Kind
	Rule Rule
}

// Hello is what a simulator says of itself.
type Hello struct {
	// Version is that of the frames.
	Version uint32
	// FIFO is how many lines the simulator holds for the role, at least 1, and MinNetworkFIFO of
	// each of UDP and TCP.
	FIFO uint32
	// Boundary is which streams it has.
	Boundary Boundary
}

// Start is what a simulator gets to know of its rank.
type Start struct {
	Rank, Size uint32
	// Stall is the percentage of cycles in which the simulator makes the role wait, on each
	// stream, by random numbers from Seed.
	Stall uint32
	Seed  uint64
}

// Step lets the simulator run.
type Step struct {
	// Cycles is how many at most. It returns sooner after Budget microseconds, and when a call
	// or the last line of a message was transferred, or there is no room for more records; with
	// More also when the role has taken all lines.
	Cycles, Budget uint32
	// Calls and Lines are how many transfers on soMPIif and soMPI_data the engine takes.
	Calls, Lines uint32
	More         bool
	// TCPCalls and TCPLines are those of the streams of TCP.
	TCPCalls, TCPLines uint32
	// Records are what is to be transferred to the role.
	Records []Record
}

// Held is how a simulator's streams stand.
type Held struct {
	// Lines and Feedbacks are how many records to the role it has not taken yet.
	Lines, Feedbacks uint32
	// Since has, for each Kind, the cycle since which valid is set and ready is not, or Never.
	Since [kinds]uint64
}

// Result says what has happened in a step.
type Result struct {
	// Cycle is the number of cycles since the simulation began.
	Cycle uint64
	Held
	// TCP is that of the streams of TCP.
	TCP Held
	// Records are what was transferred from the role.
	Records []Record
}

// ErrFrame is the error of a frame that breaks the specification.
var ErrFrame = errors.New("malformed frame from the simulator: its shim is not that of this version (zrlctl cosim new writes it)")

// VersionError is the error of a simulator with other frames.
type VersionError struct{ Got uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the simulator's shim has version %d of the frames and this zrlmpid version %d: write it again with zrlctl cosim new, and build the simulator", e.Got, Version)
}

// BoundaryError is the error of a simulator with the streams of the other boundary.
type BoundaryError struct{ Got, Want Boundary }

func (e *BoundaryError) Error() string {
	if e.Got.Network() {
		return "the simulator has the network streams of a role with an MPE of its own, and this kernel the streams between role and MPE: write kernel: \"rtl-net:SIMULATOR\""
	}
	return "the simulator has the streams between role and MPE, and this kernel the network streams: write kernel: \"rtl:SIMULATOR\""
}

// ParseHead reads the head of a frame, and returns the length of its body, which is at most
// MaxFrame - HeadLen.
func ParseHead(b []byte) (t Type, body int, err error) {
	if len(b) < HeadLen {
		return 0, 0, fmt.Errorf("%w: a head of %d bytes", ErrFrame, len(b))
	}
	t, n := Type(b[0]), binary.LittleEndian.Uint32(b[4:])
	if b[1]|b[2]|b[3] != 0 || n > MaxFrame-HeadLen {
		return 0, 0, fmt.Errorf("%w: head % x", ErrFrame, b[:HeadLen])
	}
	return t, int(n), nil
}

// ParseHello reads the body of a hello.
func ParseHello(b []byte) (Hello, error) {
	if len(b) != helloLen || binary.LittleEndian.Uint32(b) != magic {
		return Hello{}, fmt.Errorf("%w: hello % x", ErrFrame, b[:min(len(b), helloLen)])
	}
	h := Hello{Version: binary.LittleEndian.Uint32(b[4:]), FIFO: binary.LittleEndian.Uint32(b[8:]), Boundary: Boundary(binary.LittleEndian.Uint32(b[12:]))}
	switch {
	case h.Version != Version:
		return h, &VersionError{h.Version}
	case h.Boundary >= boundaries:
		return h, fmt.Errorf("%w: hello with boundary %d", ErrFrame, h.Boundary)
	case h.FIFO == 0 || h.Boundary.Network() && h.FIFO < MinNetworkFIFO:
		return h, fmt.Errorf("%w: hello with room for %d lines", ErrFrame, h.FIFO)
	}
	return h, nil
}

// AppendHello is the inverse of ParseHello, with a head.
func AppendHello(b []byte, h Hello) []byte {
	b = appendHead(b, TypeHello, helloLen)
	for _, v := range []uint32{magic, h.Version, h.FIFO, uint32(h.Boundary)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// AppendStart appends the frame of a start.
func AppendStart(b []byte, s Start) []byte {
	b = appendHead(b, TypeStart, startLen)
	for _, v := range []uint32{s.Rank, s.Size, s.Stall, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, s.Seed)
}

// ParseStart reads the body of a start.
func ParseStart(b []byte) (s Start, err error) {
	if len(b) != startLen {
		return s, fmt.Errorf("%w: start of %d bytes", ErrFrame, len(b))
	}
	return Start{
		Rank: binary.LittleEndian.Uint32(b), Size: binary.LittleEndian.Uint32(b[4:]),
		Stall: binary.LittleEndian.Uint32(b[8:]), Seed: binary.LittleEndian.Uint64(b[16:]),
	}, nil
}

// AppendStep appends the frame of a step at a boundary, whose records are at most MaxRecords.
func AppendStep(b []byte, at Boundary, s *Step) []byte {
	more := uint32(0)
	if s.More {
		more = 1
	}
	values := [...]uint32{s.Cycles, s.Budget, s.Calls, s.Lines, more, s.TCPCalls, s.TCPLines}
	n := stepLenAt(at)
	b = appendHead(b, TypeStep, n+len(s.Records)*RecordLen)
	for _, v := range values[:n/4] {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return appendRecords(b, s.Records)
}

// stepLenAt is the length of a step without its records.
func stepLenAt(at Boundary) int {
	if at == BoundaryTCP {
		return stepLen + stepTCPLen
	}
	return stepLen
}

// ParseStep reads the body of a step at a boundary. The records are appended to s.Records[:0].
func ParseStep(b []byte, at Boundary, s *Step) (err error) {
	n := stepLenAt(at)
	if len(b) < n {
		return fmt.Errorf("%w: step of %d bytes", ErrFrame, len(b))
	}
	s.Cycles, s.Budget = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	s.Calls, s.Lines = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	s.More = binary.LittleEndian.Uint32(b[16:]) != 0
	known := kindBit(KindIn) | kindBit(KindFeedback)
	if s.TCPCalls, s.TCPLines = 0, 0; at == BoundaryTCP {
		s.TCPCalls, s.TCPLines = binary.LittleEndian.Uint32(b[stepLen:]), binary.LittleEndian.Uint32(b[stepLen+4:])
		known |= known << KindTCP
	}
	s.Records, err = parseRecords(s.Records[:0], b[n:], known, 0)
	return err
}

// AppendResult appends the frame of an answer at a boundary, whose records are at most MaxRecords.
func AppendResult(b []byte, at Boundary, s *Result) []byte {
	n := resultLen
	if at == BoundaryTCP {
		n += resultTCPLen
	}
	b = appendHead(b, TypeResult, n+len(s.Records)*RecordLen)
	b = binary.LittleEndian.AppendUint64(b, s.Cycle)
	if b = appendHeld(b, &s.Held); at == BoundaryTCP {
		b = appendHeld(b, &s.TCP)
	}
	return appendRecords(b, s.Records)
}

func appendHeld(b []byte, h *Held) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.Lines)
	b = binary.LittleEndian.AppendUint32(b, h.Feedbacks)
	for _, v := range h.Since {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ParseResult reads the body of an answer at a boundary. The records are appended to s.Records[:0].
func ParseResult(b []byte, at Boundary, s *Result) (err error) {
	n, known := resultLen, kindBit(KindCall)|kindBit(KindOut)
	checked := known | kindBit(KindIn) | kindBit(KindFeedback)
	if at.Network() {
		known |= kindBit(KindPorts)
	}
	if at == BoundaryTCP {
		n += resultTCPLen
		known |= known << KindTCP
		checked |= checked << KindTCP
	}
	if len(b) < n {
		return fmt.Errorf("%w: answer of %d bytes", ErrFrame, len(b))
	}
	s.Cycle = binary.LittleEndian.Uint64(b)
	s.TCP = nothingHeld
	if err := parseHeld(b[8:], at, 0, s.Cycle, &s.Held); err != nil {
		return err
	}
	if at == BoundaryTCP {
		if err := parseHeld(b[resultLen:], at, KindTCP, s.Cycle, &s.TCP); err != nil {
			return err
		}
	}
	s.Records, err = parseRecords(s.Records[:0], b[n:], known, checked)
	return err
}

// nothingHeld is the Held of streams on which nothing is under way.
var nothingHeld = Held{Since: [kinds]uint64{Never, Never, Never, Never}}

// parseHeld reads a Held of the streams from a kind on.
func parseHeld(b []byte, at Boundary, from Kind, cycle uint64, h *Held) error {
	h.Lines, h.Feedbacks = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	for i := range h.Since {
		h.Since[i] = binary.LittleEndian.Uint64(b[8+8*i:])
		if h.Since[i] != Never && h.Since[i] > cycle {
			return fmt.Errorf("%w: %s waits since cycle %d, after cycle %d", ErrFrame, at.stream(from+Kind(i)), h.Since[i], cycle)
		}
	}
	return nil
}

func appendHead(b []byte, t Type, body int) []byte {
	b = append(b, byte(t), 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(body))
}

func appendRecords(b []byte, records []Record) []byte {
	for i := range records {
		r := &records[i]
		b = binary.LittleEndian.AppendUint64(b, r.Data)
		b = binary.LittleEndian.AppendUint32(b, r.At)
		last := byte(0)
		if r.Last {
			last = 1
		}
		b = append(b, r.Keep, last, byte(r.Kind), byte(r.Rule))
	}
	return b
}

// kindBit is the bit of a kind in a set of kinds.
func kindBit(k Kind) uint64 { return 1 << (k & 63) }

// parseRecords reads records of transfers on the streams of the set known, and of broken rules on those of checked.
func parseRecords(records []Record, b []byte, known, checked uint64) ([]Record, error) {
	if len(b)%RecordLen != 0 || len(b) > MaxRecords*RecordLen {
		return records, fmt.Errorf("%w: %d bytes of records", ErrFrame, len(b))
	}
	for ; len(b) > 0; b = b[RecordLen:] {
		kind, rule, allowed := Kind(b[14]), Rule(b[15]), known
		if rule != RuleNone {
			allowed = checked
		}
		if kind > KindTCP+KindPorts || allowed&kindBit(kind) == 0 || rule != RuleNone && !rule.appliesTo(kind) || b[13] > 1 {
			return records, fmt.Errorf("%w: record % x", ErrFrame, b[:RecordLen])
		}
		records = append(records, Record{
			Data: binary.LittleEndian.Uint64(b), At: binary.LittleEndian.Uint32(b[8:]),
			Keep: b[12], Last: b[13] == 1, Kind: kind, Rule: rule,
		})
	}
	return records, nil
}
