package cosim

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// MaxDatagram is the maximum length in bytes of a datagram sent to a role. It exceeds protocol.MaxDatagram by one
	// line, because deployed MPEs send such datagrams if their shell allows it.
	MaxDatagram = protocol.MaxDatagram + protocol.LineLen
	// MaxChunk is the maximum length in bytes of a chunk received by a role from a TCP connection. It equals the length
	// of the shell's FIFO.
	MaxChunk = 2000
	// MaxSegment is the maximum length in bytes of a chunk sent by a role on a TCP connection. The shell splits longer
	// chunks.
	MaxSegment = 1352
	// MinNetworkFIFO is the minimum value of Hello.FIFO at the boundaries between role and shell. A FIFO of this size
	// can hold one datagram or chunk.
	MinNetworkFIFO = 256
	// metaFIFO is the maximum number of pending metadata words in each direction.
	metaFIFO = 32
	// maxStream is the maximum number of bytes before tlast in a datagram whose metadata contains length 0. It is
	// limited because a length has 16 bits.
	maxStream = 1 << 16
)

// lineCount returns the number of lines in a datagram of the given length.
func lineCount(bytes int) int { return (bytes + lineLen - 1) / lineLen }

// Datagram is a datagram to or from the role, or a chunk of data on a TCP connection.
type Datagram struct {
	// Rank is the rank that sent or receives the datagram, or negative if the address does not belong to any rank. Port
	// is that rank's UDP or TCP port.
	Rank int
	Port uint16
	// LocalPort is the role's TCP port.
	LocalPort uint16
	// Bytes is the payload.
	Bytes []byte
}

// metadata describes a datagram: dst_rank, dst_port, src_rank, src_port, len. cFDK calls this structure NetworkMeta.
type metadata struct {
	data  uint64
	cycle uint64
}

func (m metadata) dstRank() int    { return int(uint8(m.data)) }
func (m metadata) dstPort() uint16 { return metaPort(uint16(m.data >> 8)) }
func (m metadata) srcPort() uint16 { return metaPort(uint16(m.data >> 32)) }
func (m metadata) length() int     { return int(uint16(m.data >> 48)) }

// packMeta encodes metadata in the form in which the signal tdata carries it.
func packMeta(dstRank int, dstPort uint16, srcRank int, srcPort uint16, length int) uint64 {
	return uint64(uint8(dstRank)) | uint64(dstPort)<<8 | uint64(uint8(srcRank))<<24 | uint64(srcPort)<<32 |
		uint64(uint16(length))<<48
}

// metaPort returns the port that metadata specifies with the value p. As in the shell, 0 selects the first port.
func metaPort(p uint16) uint16 {
	if p == 0 {
		return protocol.Port
	}
	return p
}

// Network implements the shell's side of the role's network streams.
type Network struct {
	rank  int
	ports []uint16 // UDP ports, indexed by rank

	udp, tcp streams
	// pending holds the records to send in the next step.
	pending   []Record
	fifoLines uint32 // Hello.FIFO
	// tcpCapacity is the number of bytes that the TCP connections can accept.
	tcpCapacity int

	cycle, lastTransfer uint64
	fault               *FaultError
	lastRefusal         *FaultError
	findings
}

// streams holds the state either of the UDP streams or of the TCP streams.
type streams struct {
	// kind is added to the kinds of the UDP streams to obtain the kinds of these streams. maxLen is the maximum length
	// of a datagram to the role. The shell splits data from the role into pieces of at most maxSegment bytes.
	kind               Kind
	maxLen, maxSegment int

	// openPorts is the value that poROL_Nrc_Udp_Rx_ports has had since cycle portsChangedAt. If bit n is set, port
	// protocol.Port + n is open.
	openPorts      uint32
	portsChangedAt uint64

	// state describes the records that the simulator holds. newLines and newMetas count the records that have not yet
	// been sent to it.
	state              StreamState
	newLines, newMetas uint32
	// granted is the number of lines that the role may transfer in the current step.
	granted uint32

	// Incomplete transfers from the role: queued holds metadata whose lines have not arrived, and early holds lines
	// whose metadata has not arrived.
	queued []metadata
	early  []earlyLine
	// State of the datagram in progress: its metadata, the number of bytes received, and the bytes not yet sent.
	busy          bool
	current       metadata
	bytesReceived int
	dropReason    string // reason why the datagram is dropped, or empty
	partial       []byte

	// outgoing holds the datagrams completed in the last result. Their bytes are stored in the slice arena.
	outgoing []Datagram
	arena    []byte
	stats    state.Datagrams
}

// NewNetwork returns the Network of a rank. ports contains the UDP ports of all ranks. The rank's own port must be one
// that a shell can open.
func NewNetwork(rank int, ports []uint16) *Network {
	return &Network{
		rank: rank, ports: ports,
		udp: streams{maxLen: MaxDatagram, maxSegment: protocol.MaxDatagram, state: idleStreams},
		tcp: streams{kind: KindTCP, maxLen: MaxChunk, maxSegment: MaxSegment, state: idleStreams},
	}
}

// HasSpace reports whether another datagram fits, in which case Deliver may be called.
func (n *Network) HasSpace() bool { return n.hasSpace(&n.udp) }

// HasSpaceTCP reports whether another chunk fits, in which case DeliverTCP may be called.
func (n *Network) HasSpaceTCP() bool { return n.hasSpace(&n.tcp) }

// hasSpace reports whether a datagram of maximum length fits into both the simulator's FIFOs and the next step.
func (n *Network) hasSpace(s *streams) bool {
	most := lineCount(s.maxLen)
	return n.fault == nil && s.state.Lines+s.newLines+uint32(most) <= n.fifoLines &&
		s.state.Feedbacks+s.newMetas < metaFIFO && len(n.pending)+1+most <= MaxRecords
}

// Deliver passes a datagram to the role in the next step. It returns false if the shell would drop the datagram.
func (n *Network) Deliver(datagram Datagram) bool {
	switch {
	case datagram.Rank < 0:
		n.udp.stats.Unknown++
		return false
	case len(datagram.Bytes) == 0 || len(datagram.Bytes) > MaxDatagram:
		n.udp.stats.Length++
		return false
	case !n.isOpen():
		n.udp.stats.Closed++
		return false
	}
	datagram.LocalPort = n.ports[n.rank]
	n.queueDatagram(&n.udp, datagram)
	return true
}

// DeliverTCP passes a chunk of 1 to MaxChunk bytes from a TCP connection to the role in the next step.
func (n *Network) DeliverTCP(d Datagram) { n.queueDatagram(&n.tcp, d) }

// queueDatagram appends the records that represent a datagram to pending.
func (n *Network) queueDatagram(s *streams, datagram Datagram) {
	s.stats.Received++
	s.newMetas++
	n.pending = append(n.pending,
		Record{Kind: s.kind + KindInMeta, Keep: 0xff, Last: true,
			Data: packMeta(n.rank, datagram.LocalPort, datagram.Rank, datagram.Port, len(datagram.Bytes))})
	s.newLines += uint32(lineCount(len(datagram.Bytes)))
	for b := datagram.Bytes; len(b) > 0; {
		var line [lineLen]byte
		k := copy(line[:], b)
		b = b[k:]
		n.pending = append(n.pending,
			Record{Kind: s.kind + KindInData, Keep: keepBits(k), Last: len(b) == 0,
				Data: binary.LittleEndian.Uint64(line[:])})
	}
}

// keepBits returns the value of the signal tkeep for a line with the given number of bytes.
func keepBits(bytes int) uint8 { return uint8(1<<bytes - 1) }

// isOpen reports whether the role has opened its UDP port.
func (n *Network) isOpen() bool { return n.udp.openPorts>>(n.ports[n.rank]-protocol.Port)&1 == 1 }

// SetTCPCapacity sets the number of bytes from the role that the TCP connections can accept in the next step.
func (n *Network) SetTCPCapacity(bytes int) { n.tcpCapacity = bytes }

// PortsTCP returns the TCP ports opened by the role: bit n represents port protocol.Port + n.
func (n *Network) PortsTCP() uint32 { return n.tcp.openPorts }

// PrepareStep sets the records and limits of a step. The argument lines is the value of Hello.FIFO that the simulator
// sent. The error is always nil.
func (n *Network) PrepareStep(step *Step, lines uint32) error {
	n.fifoLines = lines
	*step = Step{Cycles: step.Cycles, Budget: step.Budget, Records: append(step.Records[:0], n.pending...)}
	n.pending = n.pending[:0]
	n.udp.commitPending()
	n.tcp.commitPending()
	if n.fault == nil {
		step.StopWhenDrained = !n.HasSpace() || !n.HasSpaceTCP()
		n.udp.granted = uint32(lineFIFO - len(n.udp.early))
		n.tcp.granted = uint32(max(0, min(lineFIFO, (n.tcpCapacity-len(n.tcp.partial))/lineLen)-len(n.tcp.early)))
		step.Calls, step.Lines = uint32(metaFIFO-len(n.udp.queued)), n.udp.granted
		step.TCPCalls, step.TCPLines = uint32(metaFIFO-len(n.tcp.queued)), n.tcp.granted
	}
	return nil
}

// commitPending records that the simulator has received the records that were pending.
func (s *streams) commitPending() {
	s.state.Lines, s.state.Feedbacks = s.state.Lines+s.newLines, s.state.Feedbacks+s.newMetas
	s.newLines, s.newMetas, s.granted = 0, 0, 0
}

// Advance processes the result of a step. The error is either ErrFrame or a *FaultError. A *FaultError is returned only
// once.
func (n *Network) Advance(result *Result) error {
	before := n.cycle
	if result.Cycle < before {
		return fmt.Errorf("%w: cycle %d after cycle %d", ErrFrame, result.Cycle, before)
	}
	for _, s := range [...]struct {
		*streams
		now *StreamState
	}{{&n.udp, &result.StreamState}, {&n.tcp, &result.TCP}} {
		if s.now.Lines > s.state.Lines || s.now.Feedbacks > s.state.Feedbacks {
			return fmt.Errorf("%w: %d lines of %d, %d words of metadata of %d", ErrFrame, s.now.Lines, s.state.Lines,
				s.now.Feedbacks, s.state.Feedbacks)
		}
		if s.now.Lines < s.state.Lines || s.now.Feedbacks < s.state.Feedbacks {
			n.lastTransfer = result.Cycle
		}
		s.state, s.outgoing, s.arena = *s.now, s.outgoing[:0], s.arena[:0]
	}
	n.cycle = result.Cycle
	for i := range result.Records {
		record := &result.Records[i]
		at := before + uint64(record.CycleOffset)
		if at > result.Cycle {
			return fmt.Errorf("%w: a transfer at cycle %d of %d", ErrFrame, at, result.Cycle)
		}
		if n.fault != nil {
			continue
		}
		s := &n.udp
		if record.Kind >= KindTCP {
			s = &n.tcp
		}
		if record.Rule != RuleNone {
			if f := n.brokenRule(BoundaryTCP, *record, at, s.context()); f != nil {
				n.fault = f
				return f
			}
			continue
		}
		n.lastTransfer = at
		if err := n.handleTransfer(s, *record, at); err != nil {
			return err
		}
	}
	return nil
}

// handleTransfer processes a transfer from the role.
func (n *Network) handleTransfer(s *streams, record Record, at uint64) error {
	kind := record.Kind - s.kind
	switch {
	case kind == KindPorts:
		s.openPorts, s.portsChangedAt = uint32(record.Data), at
		return nil
	case kind == KindOutMeta && len(s.queued) == metaFIFO || kind == KindOutData && s.granted == 0:
		return fmt.Errorf("%w: a transfer on %s at cycle %d, without space for it", ErrFrame, s.name(kind), at)
	case kind == KindOutMeta:
		s.queued = append(s.queued, metadata{record.Data, at})
	default:
		s.granted--
		s.early = append(s.early, earlyLine{record, at})
	}
	done := 0
	for ; done < len(s.early) && (s.busy || len(s.queued) > 0); done++ {
		if f := n.addLine(s, s.early[done].record, s.early[done].cycle); f != nil {
			n.fault = f
			return f
		}
	}
	s.early = s.early[:copy(s.early, s.early[done:])]
	return nil
}

// name returns the name of one of these streams, given the kind of the corresponding UDP stream.
func (s *streams) name(kind Kind) string { return BoundaryTCP.stream(s.kind + kind) }

// isTCP reports whether s represents the TCP streams.
func (s *streams) isTCP() bool { return s.kind == KindTCP }

// unit returns the word that error messages use for one unit of data on these streams.
func (s *streams) unit() string {
	if s.isTCP() {
		return "chunk"
	}
	return "datagram"
}

// context describes the datagram in progress, for use in the message of a fault.
func (s *streams) context() string {
	if !s.busy {
		return ""
	}
	return fmt.Sprintf(", after %d bytes of the %s to rank %d (cycle %d)", s.bytesReceived, s.unit(), s.current.dstRank(),
		s.current.cycle)
}

// startDatagram starts to process the datagram that the oldest queued metadata describes.
func (n *Network) startDatagram(s *streams) {
	m := s.queued[0]
	s.queued = s.queued[:copy(s.queued, s.queued[1:])]
	s.busy, s.current, s.bytesReceived, s.dropReason, s.partial = true, m, 0, "", s.partial[:0]
	switch rank := m.dstRank(); {
	case rank >= len(n.ports):
		s.dropReason = fmt.Sprintf("dst_rank is %d: the cluster has ranks 0 to %d", rank, len(n.ports)-1)
	case rank == n.rank:
		s.dropReason = fmt.Sprintf("dst_rank is %d, the role's own rank", rank)
	case s.isTCP(): // a connection may use any port
	case m.dstPort() != n.ports[rank]:
		s.dropReason = fmt.Sprintf("dst_port is %d: rank %d is at port %d", m.dstPort(), rank, n.ports[rank])
	case m.srcPort() != n.ports[n.rank]:
		s.dropReason = fmt.Sprintf("src_port is %d: the role's rank is at port %d", m.srcPort(), n.ports[n.rank])
	}
	if s.dropReason != "" {
		s.stats.Refused++
		n.lastRefusal = &FaultError{s.name(KindOutMeta) + "_TDATA", m.cycle,
			fmt.Sprintf("%s: the %s is dropped", s.dropReason, s.unit())}
	}
}

// addLine processes one line of a datagram.
func (n *Network) addLine(s *streams, record Record, at uint64) *FaultError {
	if !s.busy {
		n.startDatagram(s)
	}
	length, bytes := s.current.length(), bits.Len8(record.Keep)
	s.bytesReceived += bytes
	// If the metadata of a chunk has a length, the shell ignores tlast, unless it drops the chunk.
	tlast := record.Last && (!s.isTCP() || length == 0 || s.dropReason != "")
	last := tlast || length > 0 && s.bytesReceived >= length
	problem, signal := "", "tkeep"
	switch {
	case record.Keep == 0 || record.Keep != keepBits(bytes):
		problem = fmt.Sprintf("0x%02x: the valid bytes of a line must be its first ones, at least 1", record.Keep)
	case !last && bytes < lineLen:
		problem = fmt.Sprintf("0x%02x on a line that is not the last: all 8 bytes must be valid", record.Keep)
	case length > 0 && s.bytesReceived > length:
		problem = fmt.Sprintf("0x%02x: len of the metadata is %d, and with this line the %s has %d bytes", record.Keep,
			length, s.unit(), s.bytesReceived)
	case tlast && s.bytesReceived < length && !s.isTCP():
		problem, signal = fmt.Sprintf("set after %d bytes: len of the metadata is %d", s.bytesReceived, length), "tlast"
	case !last && s.bytesReceived >= maxStream && !s.isTCP():
		problem, signal = fmt.Sprintf("not set in %d bytes: without a len in the metadata, it ends the datagram",
			s.bytesReceived), "tlast"
	}
	if problem != "" {
		return &FaultError{s.name(KindOutData) + "_" + signal, at,
			fmt.Sprintf("%s, in the %s to rank %d (cycle %d)", problem, s.unit(), s.current.dstRank(), s.current.cycle)}
	}
	if s.dropReason == "" {
		var line [lineLen]byte
		binary.LittleEndian.PutUint64(line[:], record.Data)
		s.partial = append(s.partial, line[:bytes]...)
		if last || len(s.partial) == s.maxSegment {
			s.emit()
		}
	}
	s.busy = !last
	return nil
}

// emit sends the bytes collected so far.
func (s *streams) emit() {
	from := len(s.arena)
	s.arena = append(s.arena, s.partial...)
	s.partial = s.partial[:0]
	m := s.current
	s.outgoing = append(s.outgoing, Datagram{Rank: m.dstRank(), Port: m.dstPort(), LocalPort: m.srcPort(),
		Bytes: s.arena[from:]})
	s.stats.Sent++
}

// Outgoing returns the datagrams completed in the last step, in order. They are valid until the next call of Advance.
func (n *Network) Outgoing() []Datagram { return n.udp.outgoing }

// OutgoingTCP returns the chunks completed in the last step. They are valid until the next call of Advance. Their total
// length does not exceed the limit set by SetTCPCapacity.
func (n *Network) OutgoingTCP() []Datagram { return n.tcp.outgoing }

// LastRefusal returns the reason, such as an unknown rank or port, why a datagram or chunk from the role was last
// dropped. It returns nil if none has been dropped.
func (n *Network) LastRefusal() *FaultError { return n.lastRefusal }

// Stats returns the counters for datagrams.
func (n *Network) Stats() state.Datagrams { return n.udp.stats }

// TCPStats returns the counters for chunks.
func (n *Network) TCPStats() state.Chunks {
	return state.Chunks{Received: n.tcp.stats.Received, Sent: n.tcp.stats.Sent, Refused: n.tcp.stats.Refused}
}

// IsFaulty reports whether the role has broken a rule of its interface.
func (n *Network) IsFaulty() bool { return n.fault != nil }

// Overdue reports whether the role has been delaying a datagram for at least the given number of cycles, and returns
// the cycle in which the delay began.
func (n *Network) Overdue(cycles uint64) (since uint64, ok bool) {
	if w := n.Wait(); n.fault == nil && w.Signal != "" {
		return w.Since, n.cycle-w.Since >= cycles
	}
	return 0, false
}

// IsIdle reports whether no datagram or chunk is in progress.
func (n *Network) IsIdle() bool { return n.udp.isIdle() && n.tcp.isIdle() }

func (s *streams) isIdle() bool {
	return !s.busy && len(s.queued) == 0 && len(s.early) == 0 && s.state.Lines == 0 && s.state.Feedbacks == 0
}

// Cycle returns the most recent cycle reported by the simulator.
func (n *Network) Cycle() uint64 { return n.cycle }

// Wait describes the event that the exchange with the simulator is waiting for.
func (n *Network) Wait() Wait {
	if n.fault != nil {
		return Wait{n.fault.Signal, n.fault.Cycle, n.fault.Problem}
	}
	for _, s := range [...]*streams{&n.udp, &n.tcp} {
		if w := s.currentWait(n.lastTransfer); w.Text != "" {
			return w
		}
	}
	if !n.isOpen() && n.tcp.openPorts == 0 && n.tcp.stats == (state.Datagrams{}) {
		return Wait{"poROL_Nrc_Udp_Rx_ports", n.udp.portsChangedAt,
			fmt.Sprintf("bit %d is 0: port %d is closed", n.ports[n.rank]-protocol.Port, n.ports[n.rank])}
	}
	return Wait{Since: n.lastTransfer, Text: "no datagram is in progress"}
}

// currentWait describes the event that the streams are waiting for. The Text of the result is empty if they are not
// waiting. The argument moved is the cycle of the last transfer, which is used if the start of the wait is unknown.
func (s *streams) currentWait(moved uint64) Wait {
	since := &s.state.StalledSince
	switch {
	case since[KindInData] != Never:
		return Wait{s.name(KindInData) + "_tready", since[KindInData],
			fmt.Sprintf("low, with a line of a %s offered, and %d queued behind it", s.unit(), max(s.state.Lines, 1)-1)}
	case since[KindInMeta] != Never:
		return Wait{s.name(KindInMeta) + "_TREADY", since[KindInMeta],
			fmt.Sprintf("low, with the metadata of a %s offered", s.unit())}
	case s.isTCP() && since[KindOutData] != Never && s.granted == 0 && len(s.early) == 0:
		return Wait{Since: since[KindOutData], Text: "the peer of a TCP connection accepts no more data"}
	case s.busy:
		return Wait{s.name(KindOutData) + "_tvalid", moved,
			fmt.Sprintf("low, after %d bytes of the %s to rank %d (cycle %d)", s.bytesReceived, s.unit(), s.current.dstRank(),
				s.current.cycle)}
	case len(s.queued) > 0:
		return Wait{s.name(KindOutData) + "_tvalid", moved,
			fmt.Sprintf("low, with the metadata of a %s to rank %d taken", s.unit(), s.queued[0].dstRank())}
	case len(s.early) > 0:
		return Wait{s.name(KindOutMeta) + "_TVALID", moved,
			fmt.Sprintf("low, with %d lines of a %s taken", len(s.early), s.unit())}
	}
	return Wait{}
}
