package cosim

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the frame format. Each side exits if the other side's version differs.
const Version = 2

// Lengths in bytes of frames and their parts. Each frame consists of a head and a body.
const (
	HeadLen   = 8
	RecordLen = 16
	helloLen  = 16
	startLen  = 24
	stepLen   = 20
	resultLen = 48
	// Additional lengths of a Step and of a Result if the boundary includes TCP streams.
	stepTCPLen   = 8
	resultTCPLen = 40
)

// MaxRecords is the maximum number of records in a frame, and MaxFrame the maximum length of a frame in bytes.
const (
	MaxRecords = 4096
	MaxFrame   = HeadLen + resultLen + resultTCPLen + MaxRecords*RecordLen
)

// magic is the first word of a Hello frame: "ZCOS".
const magic = 0x534f435a

// Type is the type of a frame.
type Type uint8

// Types of frames. The simulator sends Hello once, and a Result in reply to each Step. The engine sends Start
// once, followed by Steps.
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

// Kind identifies the stream of a record.
type Kind uint8

// Streams at the role's interface, with their names in upstream's templates.
const (
	// KindCall is soMPIif, which carries the role's calls.
	KindCall Kind = iota
	// KindOut is soMPI_data, which carries the lines of outgoing messages from the role.
	KindOut
	// KindIn is siMPI_data, which carries the lines of incoming messages to the role.
	KindIn
	// KindFeedback is siMPIFeB, which informs the role that a call is complete.
	KindFeedback
	numKinds = 4
)

// Streams between the role and the network, with their names in the shell. Each stream has the same direction as the
// MPI stream that has the same numeric value.
const (
	// KindOutMeta is soROLE_Nrc_Udp_Meta, which carries the metadata of datagrams from the role.
	KindOutMeta = KindCall
	// KindOutData is soNRC_Udp_Data, which carries the lines of datagrams from the role.
	KindOutData = KindOut
	// KindInData is siNRC_Udp_Data, which carries the lines of datagrams to the role.
	KindInData = KindIn
	// KindInMeta is siNRC_Role_Udp_Meta, which carries the metadata of datagrams to the role.
	KindInMeta = KindFeedback
	// KindPorts represents the signal poROL_Nrc_Udp_Rx_ports, which is not a stream. The simulator reports each change
	// of the signal.
	KindPorts Kind = numKinds
	// KindTCP is the offset from the kind of a UDP stream to the kind of the corresponding TCP stream.
	KindTCP Kind = 8
)

// Boundary identifies the interface at which FPGA logic is divided between simulator and engine.
type Boundary uint32

// Boundaries.
const (
	// BoundaryRole consists of the streams between the role and its MPE.
	BoundaryRole Boundary = iota
	// BoundaryNetwork consists of the UDP streams between the role and the shell. The MPE is then part of the
	// simulation.
	BoundaryNetwork
	// BoundaryTCP consists of the UDP streams of BoundaryNetwork and, in addition, the TCP streams.
	BoundaryTCP
	numBoundaries
)

// Network reports whether the boundary lies between the role and the shell.
func (b Boundary) Network() bool { return b != BoundaryRole }

// kindNames contains the names of the role's streams, the UDP streams and the TCP streams.
var kindNames = [...][numKinds]string{
	{"soMPIif", "soMPI_data", "siMPI_data", "siMPIFeB"},
	{"soROLE_Nrc_Udp_Meta", "soNRC_Udp_Data", "siNRC_Udp_Data", "siNRC_Role_Udp_Meta"},
	{"soROLE_Nrc_Tcp_Meta", "soNRC_Tcp_Data", "siNRC_Tcp_Data", "siNRC_Role_Tcp_Meta"},
}

// String returns the name of stream k at the role's interface.
func (k Kind) String() string { return BoundaryRole.stream(k) }

// stream returns the name of stream k at boundary b.
func (b Boundary) stream(kind Kind) string {
	switch {
	case kind < numKinds && b.Network():
		return kindNames[1][kind]
	case kind < numKinds:
		return kindNames[0][kind]
	case kind >= KindTCP && kind < KindTCP+numKinds:
		return kindNames[2][kind-KindTCP]
	}
	return fmt.Sprintf("stream %d", uint8(kind))
}

// Never stands for the cycle of an event that has not occurred.
const Never = ^uint64(0)

// Record is one transfer on a stream: valid and ready are both set at a clock edge. If Rule is not RuleNone, the record
// instead reports that the role broke that rule on the stream.
type Record struct {
	// Data holds the two words of a line, the first one in the low half. For a call, the low half is the count and the
	// high half the rank. For feedback, only the lowest byte is used.
	Data uint64
	// CycleOffset is the number of cycles between the previous frame and the transfer. It is 0 in a step.
	CycleOffset uint32
	// Keep has one bit for each byte of a line, set for the bytes of the message. For a call, it is the call's number.
	Keep uint8
	// Last is set for the last line of a message.
	Last bool
	Kind Kind
	Rule Rule
}

// Hello is the frame in which a simulator describes itself.
type Hello struct {
	// Version is the version of the frame format.
	Version uint32
	// FIFO is the simulator's capacity for lines to the role: at least 1, or at least MinNetworkFIFO for each of UDP
	// and TCP.
	FIFO uint32
	// Boundary determines which streams the simulator supports.
	Boundary Boundary
}

// Start is the frame that describes the rank to its simulator.
type Start struct {
	Rank, Size uint32
	// Stall is the percentage of cycles in which the simulator stalls the role; it chooses the cycles at random for
	// each stream. Seed is the seed of the random number generator.
	Stall uint32
	Seed  uint64
}

// Step is the frame that makes the simulator run for a number of cycles.
type Step struct {
	// Cycles is the maximum number of cycles. The step ends early after Budget microseconds, after the transfer of a
	// call or of a message's last line, or when the result is full of records. If StopWhenDrained is set, it also ends
	// when the role has received all lines.
	Cycles, Budget uint32
	// Calls and Lines are the numbers of transfers that the engine can accept on soMPIif and soMPI_data.
	Calls, Lines    uint32
	StopWhenDrained bool
	// TCPCalls and TCPLines are the corresponding numbers for the TCP streams.
	TCPCalls, TCPLines uint32
	// Records contains the transfers to the role.
	Records []Record
}

// StreamState describes the state of a simulator's streams.
type StreamState struct {
	// Lines and Feedbacks are the numbers of records not yet received by the role.
	Lines, Feedbacks uint32
	// StalledSince holds, for each Kind, the cycle since which valid has been set without ready, or Never.
	StalledSince [numKinds]uint64
}

// Result is the frame that contains the result of a step.
type Result struct {
	// Cycle is the number of cycles since the start of the simulation.
	Cycle uint64
	StreamState
	// TCP is the state of the TCP streams.
	TCP StreamState
	// Records contains the transfers from the role.
	Records []Record
}

// ErrFrame is returned for a frame that violates the specification.
var ErrFrame = errors.New("malformed frame from the simulator: its shim may have another version (regenerate it with " +
	"zrlctl cosim new)")

// VersionError reports that a simulator uses a different version of the frame format.
type VersionError struct{ Got uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the simulator's shim has frame version %d, but this zrlmpid has version %d: regenerate it "+
		"with zrlctl cosim new, and rebuild the simulator", e.Got, Version)
}

// BoundaryError reports that a simulator was built for a different boundary, and therefore supports other streams.
type BoundaryError struct{ Got, Want Boundary }

func (e *BoundaryError) Error() string {
	if e.Got.Network() {
		return "the simulator has the network streams of a role with its own MPE, but this kernel has the streams " +
			"between role and MPE: write kernel: \"rtl-net:SIMULATOR\""
	}
	return "the simulator has the streams between role and MPE, but this kernel has the network streams: write " +
		"kernel: \"rtl:SIMULATOR\""
}

// ParseHead parses the head of a frame. The returned length of the body never exceeds MaxFrame - HeadLen.
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

// ParseHello parses the body of a Hello frame.
func ParseHello(b []byte) (Hello, error) {
	if len(b) != helloLen || binary.LittleEndian.Uint32(b) != magic {
		return Hello{}, fmt.Errorf("%w: hello % x", ErrFrame, b[:min(len(b), helloLen)])
	}
	hello := Hello{Version: binary.LittleEndian.Uint32(b[4:]), FIFO: binary.LittleEndian.Uint32(b[8:]),
		Boundary: Boundary(binary.LittleEndian.Uint32(b[12:]))}
	switch {
	case hello.Version != Version:
		return hello, &VersionError{hello.Version}
	case hello.Boundary >= numBoundaries:
		return hello, fmt.Errorf("%w: hello with boundary %d", ErrFrame, hello.Boundary)
	case hello.FIFO == 0 || hello.Boundary.Network() && hello.FIFO < MinNetworkFIFO:
		return hello, fmt.Errorf("%w: hello with a capacity of %d lines", ErrFrame, hello.FIFO)
	}
	return hello, nil
}

// AppendHello appends a Hello frame to b.
func AppendHello(b []byte, h Hello) []byte {
	b = appendHead(b, TypeHello, helloLen)
	for _, v := range []uint32{magic, h.Version, h.FIFO, uint32(h.Boundary)} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// AppendStart appends a Start frame to b.
func AppendStart(b []byte, s Start) []byte {
	b = appendHead(b, TypeStart, startLen)
	for _, v := range []uint32{s.Rank, s.Size, s.Stall, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, s.Seed)
}

// ParseStart parses the body of a Start frame.
func ParseStart(b []byte) (s Start, err error) {
	if len(b) != startLen {
		return s, fmt.Errorf("%w: start of %d bytes", ErrFrame, len(b))
	}
	return Start{
		Rank: binary.LittleEndian.Uint32(b), Size: binary.LittleEndian.Uint32(b[4:]),
		Stall: binary.LittleEndian.Uint32(b[8:]), Seed: binary.LittleEndian.Uint64(b[16:]),
	}, nil
}

// AppendStep appends a Step frame for the given boundary to the slice b. step may contain at most MaxRecords records.
func AppendStep(b []byte, at Boundary, step *Step) []byte {
	more := uint32(0)
	if step.StopWhenDrained {
		more = 1
	}
	values := [...]uint32{step.Cycles, step.Budget, step.Calls, step.Lines, more, step.TCPCalls, step.TCPLines}
	n := stepBodyLen(at)
	b = appendHead(b, TypeStep, n+len(step.Records)*RecordLen)
	for _, v := range values[:n/4] {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return appendRecords(b, step.Records)
}

// stepBodyLen returns the length of a Step frame's body, excluding its records.
func stepBodyLen(at Boundary) int {
	if at == BoundaryTCP {
		return stepLen + stepTCPLen
	}
	return stepLen
}

// ParseStep parses the body of a Step frame for the given boundary. It reuses the memory of step.Records.
func ParseStep(b []byte, at Boundary, step *Step) (err error) {
	n := stepBodyLen(at)
	if len(b) < n {
		return fmt.Errorf("%w: step of %d bytes", ErrFrame, len(b))
	}
	step.Cycles, step.Budget = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	step.Calls, step.Lines = binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	step.StopWhenDrained = binary.LittleEndian.Uint32(b[16:]) != 0
	known := kindBit(KindIn) | kindBit(KindFeedback)
	if step.TCPCalls, step.TCPLines = 0, 0; at == BoundaryTCP {
		step.TCPCalls, step.TCPLines = binary.LittleEndian.Uint32(b[stepLen:]), binary.LittleEndian.Uint32(b[stepLen+4:])
		known |= known << KindTCP
	}
	step.Records, err = parseRecords(step.Records[:0], b[n:], known, 0)
	return err
}

// AppendResult appends a Result frame for the given boundary to the slice b. result may contain at most MaxRecords
// records.
func AppendResult(b []byte, at Boundary, result *Result) []byte {
	n := resultLen
	if at == BoundaryTCP {
		n += resultTCPLen
	}
	b = appendHead(b, TypeResult, n+len(result.Records)*RecordLen)
	b = binary.LittleEndian.AppendUint64(b, result.Cycle)
	if b = appendStreams(b, &result.StreamState); at == BoundaryTCP {
		b = appendStreams(b, &result.TCP)
	}
	return appendRecords(b, result.Records)
}

func appendStreams(b []byte, h *StreamState) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.Lines)
	b = binary.LittleEndian.AppendUint32(b, h.Feedbacks)
	for _, v := range h.StalledSince {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ParseResult parses the body of a Result frame for the given boundary. It reuses the memory of result.Records.
func ParseResult(b []byte, at Boundary, result *Result) (err error) {
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
	result.Cycle = binary.LittleEndian.Uint64(b)
	result.TCP = idleStreams
	if err := parseStreams(b[8:], at, 0, result.Cycle, &result.StreamState); err != nil {
		return err
	}
	if at == BoundaryTCP {
		if err := parseStreams(b[resultLen:], at, KindTCP, result.Cycle, &result.TCP); err != nil {
			return err
		}
	}
	result.Records, err = parseRecords(result.Records[:0], b[n:], known, checked)
	return err
}

// idleStreams is the state of idle streams.
var idleStreams = StreamState{StalledSince: [numKinds]uint64{Never, Never, Never, Never}}

// parseStreams parses a StreamState. The argument from is the kind of the first stream in it.
func parseStreams(b []byte, at Boundary, from Kind, cycle uint64, state *StreamState) error {
	state.Lines, state.Feedbacks = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	for i := range state.StalledSince {
		state.StalledSince[i] = binary.LittleEndian.Uint64(b[8+8*i:])
		if state.StalledSince[i] != Never && state.StalledSince[i] > cycle {
			return fmt.Errorf("%w: %s waits since cycle %d, after cycle %d", ErrFrame, at.stream(from+Kind(i)),
				state.StalledSince[i], cycle)
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
		record := &records[i]
		b = binary.LittleEndian.AppendUint64(b, record.Data)
		b = binary.LittleEndian.AppendUint32(b, record.CycleOffset)
		last := byte(0)
		if record.Last {
			last = 1
		}
		b = append(b, record.Keep, last, byte(record.Kind), byte(record.Rule))
	}
	return b
}

// kindBit returns the bit that represents k in a set of kinds.
func kindBit(k Kind) uint64 { return 1 << (k & 63) }

// parseRecords parses records. It accepts transfers only on streams in the set known. It accepts reports of broken
// rules only on streams in the set checked.
func parseRecords(records []Record, b []byte, known, checked uint64) ([]Record, error) {
	if len(b)%RecordLen != 0 || len(b) > MaxRecords*RecordLen {
		return records, fmt.Errorf("%w: %d bytes of records", ErrFrame, len(b))
	}
	for ; len(b) > 0; b = b[RecordLen:] {
		kind, rule, allowed := Kind(b[14]), Rule(b[15]), known
		if rule != RuleNone {
			allowed = checked
		}
		if kind > KindTCP+KindPorts || allowed&kindBit(kind) == 0 || rule != RuleNone && !rule.appliesTo(kind) ||
			b[13] > 1 {
			return records, fmt.Errorf("%w: record % x", ErrFrame, b[:RecordLen])
		}
		records = append(records, Record{
			Data: binary.LittleEndian.Uint64(b), CycleOffset: binary.LittleEndian.Uint32(b[8:]),
			Keep: b[12], Last: b[13] == 1, Kind: kind, Rule: rule,
		})
	}
	return records, nil
}
