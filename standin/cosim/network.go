package cosim

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// MaxDatagram is the longest datagram that is handed to a role, in bytes. Deployed MPEs send a line
	// more than protocol.MaxDatagram when their shell lets them.
	MaxDatagram = protocol.MaxDatagram + protocol.LineLen
	// MinNetworkFIFO is the least Hello.FIFO at BoundaryNetwork: room for a datagram.
	MinNetworkFIFO = 256
	// metaFIFO is how many words of metadata wait for each other side.
	metaFIFO = 32
	// maxStream is how many bytes of a datagram without a length come before tlast: its length would
	// have 16 bits.
	maxStream = 1 << 16
)

// linesOf is how many lines a datagram has.
func linesOf(bytes int) int { return (bytes + lineLen - 1) / lineLen }

// Datagram is one that the role sends, or that has arrived for it.
type Datagram struct {
	// Rank is the other rank, or negative if its address is that of none, and Port its UDP port.
	Rank int
	Port uint16
	// Bytes are its payload.
	Bytes []byte
}

// NetworkStats counts datagrams.
type NetworkStats struct {
	// Received were handed to the role, and Sent came from it.
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	// Closed arrived while the role had not opened the port, Unknown from addresses that are no rank's, and
	// Length were empty or too long.
	Closed  uint64 `json:"dropped_port_closed"`
	Unknown uint64 `json:"dropped_unknown_address"`
	Length  uint64 `json:"dropped_length"`
	// Refused came from the role for a rank or port that there is not.
	Refused uint64 `json:"dropped_refused"`
}

// meta is the metadata of a datagram, as NetworkMeta of cFDK: dst_rank, dst_port, src_rank, src_port, len.
type meta struct {
	data  uint64
	cycle uint64
}

func (m meta) dstRank() int    { return int(uint8(m.data)) }
func (m meta) dstPort() uint16 { return uint16(m.data >> 8) }
func (m meta) srcPort() uint16 { return uint16(m.data >> 32) }
func (m meta) length() int     { return int(uint16(m.data >> 48)) }

// packMeta returns metadata as tdata.
func packMeta(dstRank int, dstPort uint16, srcRank int, srcPort uint16, length int) uint64 {
	return uint64(uint8(dstRank)) | uint64(dstPort)<<8 | uint64(uint8(srcRank))<<24 | uint64(srcPort)<<32 | uint64(uint16(length))<<48
}

// portOf returns the port of metadata: 0 is the first one, as for the shell.
func portOf(p uint16) uint16 {
	if p == 0 {
		return protocol.Port
	}
	return p
}

// Network is the shell's side of the role's network streams, of UDP.
type Network struct {
	rank  int
	ports []uint16 // by rank

	// open is poROL_Nrc_Udp_Rx_ports, since cycle changed: bit n opens port protocol.Port + n.
	open    uint32
	changed uint64

	// pending are the records that the next step hands over, of so many lines and metadata.
	pending             []Record
	newLines, newMetas  uint32
	lines, metas, depth uint32 // what the simulator holds, and Hello.FIFO

	// From the role: metadata without lines, and lines without metadata.
	queued []meta
	early  []early
	// The datagram under way: its metadata, how many bytes have come, and those that were not sent yet.
	busy    bool
	current meta
	come    int
	refused string // why it is dropped
	partial []byte

	// sent are the datagrams of the last result, in arena.
	sent  []Datagram
	arena []byte

	cycle, moved uint64
	since        [kinds]uint64
	fault        *FaultError
	refusal      *FaultError
	stats        NetworkStats
}

// NewNetwork returns the network of a rank. ports are the UDP ports of all ranks, of which that of the
// rank itself is one that a shell can open.
func NewNetwork(rank int, ports []uint16) *Network {
	n := &Network{rank: rank, ports: ports}
	for i := range n.since {
		n.since[i] = Never
	}
	return n
}

// Room reports whether Deliver may be called.
func (n *Network) Room() bool {
	const most = (MaxDatagram + lineLen - 1) / lineLen
	return n.fault == nil && n.lines+n.newLines+most <= n.depth && n.metas+n.newMetas < metaFIFO && len(n.pending)+1+most <= MaxRecords
}

// Deliver hands a datagram to the role with the next step. It reports whether the shell would.
func (n *Network) Deliver(d Datagram) bool {
	switch {
	case d.Rank < 0:
		n.stats.Unknown++
		return false
	case len(d.Bytes) == 0 || len(d.Bytes) > MaxDatagram:
		n.stats.Length++
		return false
	case !n.isOpen():
		n.stats.Closed++
		return false
	}
	n.stats.Received++
	n.newMetas++
	n.pending = append(n.pending, Record{Kind: KindInMeta, Keep: 0xff, Last: true, Data: packMeta(n.rank, n.ports[n.rank], d.Rank, d.Port, len(d.Bytes))})
	n.newLines += uint32(linesOf(len(d.Bytes)))
	for b := d.Bytes; len(b) > 0; {
		var line [lineLen]byte
		k := copy(line[:], b)
		b = b[k:]
		n.pending = append(n.pending, Record{Kind: KindInData, Keep: keepOf(k), Last: len(b) == 0, Data: binary.LittleEndian.Uint64(line[:])})
	}
	return true
}

// keepOf is tkeep of a line of so many bytes.
func keepOf(bytes int) uint8 { return uint8(1<<bytes - 1) }

// isOpen reports whether the role takes datagrams.
func (n *Network) isOpen() bool { return n.open>>(n.ports[n.rank]-protocol.Port)&1 == 1 }

// Fill sets the records and the room of a step. lines is the simulator's Hello.FIFO. The error is
// always nil.
func (n *Network) Fill(s *Step, lines uint32) error {
	n.depth = lines
	s.Records, s.More, s.Calls, s.Lines = append(s.Records[:0], n.pending...), false, 0, 0
	n.pending = n.pending[:0]
	n.lines, n.metas = n.lines+n.newLines, n.metas+n.newMetas
	n.newLines, n.newMetas = 0, 0
	if n.fault == nil {
		s.More = !n.Room()
		s.Calls, s.Lines = uint32(metaFIFO-len(n.queued)), uint32(fifo-len(n.early))
	}
	return nil
}

// Advance takes what a step had as its result. The error is a *FaultError, once, or ErrFrame.
func (n *Network) Advance(s *Result) error {
	n.sent, n.arena = n.sent[:0], n.arena[:0]
	before := n.cycle
	if s.Cycle < before || s.Lines > n.lines || s.Feedbacks > n.metas {
		return fmt.Errorf("%w: cycle %d after cycle %d, %d lines of %d, %d words of metadata of %d", ErrFrame, s.Cycle, before, s.Lines, n.lines, s.Feedbacks, n.metas)
	}
	if s.Lines < n.lines || s.Feedbacks < n.metas {
		n.moved = s.Cycle
	}
	n.cycle, n.lines, n.metas, n.since = s.Cycle, s.Lines, s.Feedbacks, s.Since
	for i := range s.Records {
		r := &s.Records[i]
		at := before + uint64(r.At)
		if at > s.Cycle {
			return fmt.Errorf("%w: a transfer at cycle %d of %d", ErrFrame, at, s.Cycle)
		}
		if n.fault != nil {
			continue
		}
		n.moved = at
		if err := n.take(*r, at); err != nil {
			return err
		}
	}
	return nil
}

// take takes a transfer from the role.
func (n *Network) take(r Record, at uint64) error {
	switch {
	case r.Kind == KindPorts:
		n.open, n.changed = uint32(r.Data), at
		return nil
	case r.Kind == KindOutMeta && len(n.queued) == metaFIFO || r.Kind == KindOutData && len(n.early) == fifo:
		return fmt.Errorf("%w: a transfer on %s at cycle %d, without room for it", ErrFrame, BoundaryNetwork.stream(r.Kind), at)
	case r.Kind == KindOutMeta:
		n.queued = append(n.queued, meta{r.Data, at})
	default:
		n.early = append(n.early, early{r, at})
	}
	done := 0
	for ; done < len(n.early) && (n.busy || len(n.queued) > 0); done++ {
		if f := n.collect(n.early[done].record, n.early[done].cycle); f != nil {
			n.fault = f
			return f
		}
	}
	n.early = n.early[:copy(n.early, n.early[done:])]
	return nil
}

// begin begins the datagram of the oldest metadata.
func (n *Network) begin() {
	m := n.queued[0]
	n.queued = n.queued[:copy(n.queued, n.queued[1:])]
	n.busy, n.current, n.come, n.refused, n.partial = true, m, 0, "", n.partial[:0]
	switch rank := m.dstRank(); {
	case rank >= len(n.ports):
		n.refused = fmt.Sprintf("dst_rank is %d: the cluster has ranks 0 to %d", rank, len(n.ports)-1)
	case rank == n.rank:
		n.refused = fmt.Sprintf("dst_rank is %d, that of the role itself", rank)
	case portOf(m.dstPort()) != n.ports[rank]:
		n.refused = fmt.Sprintf("dst_port is %d: rank %d is at port %d", portOf(m.dstPort()), rank, n.ports[rank])
	case portOf(m.srcPort()) != n.ports[n.rank]:
		n.refused = fmt.Sprintf("src_port is %d: the role's rank is at port %d", portOf(m.srcPort()), n.ports[n.rank])
	}
	if n.refused != "" {
		n.stats.Refused++
		n.refusal = &FaultError{BoundaryNetwork.stream(KindOutMeta) + "_TDATA", m.cycle, n.refused + ": the datagram is dropped"}
	}
}

// collect takes a line of a datagram.
func (n *Network) collect(r Record, at uint64) *FaultError {
	if !n.busy {
		n.begin()
	}
	length, bytes := n.current.length(), bits.Len8(r.Keep)
	n.come += bytes
	last := r.Last || length > 0 && n.come >= length
	problem, signal := "", "tkeep"
	switch {
	case r.Keep == 0 || r.Keep != keepOf(bytes):
		problem = fmt.Sprintf("0x%02x: the bytes of a line are its first ones, 1 at least", r.Keep)
	case !last && bytes < lineLen:
		problem = fmt.Sprintf("0x%02x on a line that is not the last: it has 8 bytes", r.Keep)
	case length > 0 && n.come > length:
		problem = fmt.Sprintf("0x%02x: len of the metadata is %d, and with this line the datagram has %d bytes", r.Keep, length, n.come)
	case r.Last && n.come < length:
		problem, signal = fmt.Sprintf("set after %d bytes: len of the metadata is %d", n.come, length), "tlast"
	case !last && n.come >= maxStream:
		problem, signal = fmt.Sprintf("not set in %d bytes: without a len in the metadata, it ends the datagram", n.come), "tlast"
	}
	if problem != "" {
		return &FaultError{BoundaryNetwork.stream(KindOutData) + "_" + signal, at, fmt.Sprintf("%s, in the datagram to rank %d (cycle %d)", problem, n.current.dstRank(), n.current.cycle)}
	}
	if n.refused == "" {
		var line [lineLen]byte
		binary.LittleEndian.PutUint64(line[:], r.Data)
		n.partial = append(n.partial, line[:bytes]...)
		if last || len(n.partial) == protocol.MaxDatagram {
			n.emit()
		}
	}
	n.busy = !last
	return nil
}

// emit sends what has come. The shell divides what is longer than protocol.MaxDatagram.
func (n *Network) emit() {
	from := len(n.arena)
	n.arena = append(n.arena, n.partial...)
	n.partial = n.partial[:0]
	rank := n.current.dstRank()
	n.sent = append(n.sent, Datagram{Rank: rank, Port: n.ports[rank], Bytes: n.arena[from:]})
	n.stats.Sent++
}

// Sent returns the datagrams that the last step has completed, in order. They are valid until the next
// Advance.
func (n *Network) Sent() []Datagram { return n.sent }

// Refusal returns why the last datagram was dropped that the role has sent for a rank or port that
// there is not, or nil.
func (n *Network) Refusal() *FaultError { return n.refusal }

// Stats returns what was counted.
func (n *Network) Stats() NetworkStats { return n.stats }

// Faulty reports whether the role has broken the rules of its interface.
func (n *Network) Faulty() bool { return n.fault != nil }

// Overdue reports whether the role holds up a datagram for as many cycles, and since when.
func (n *Network) Overdue(cycles uint64) (since uint64, ok bool) {
	if w := n.Wait(); n.fault == nil && w.Signal != "" {
		return w.Since, n.cycle-w.Since >= cycles
	}
	return 0, false
}

// Between reports whether no datagram is under way.
func (n *Network) Between() bool {
	return !n.busy && len(n.queued) == 0 && len(n.early) == 0 && n.lines == 0 && n.metas == 0
}

// Cycle returns the cycle that the simulator has reported last.
func (n *Network) Cycle() uint64 { return n.cycle }

// Wait returns what the exchange waits for.
func (n *Network) Wait() Wait {
	switch {
	case n.fault != nil:
		return Wait{n.fault.Signal, n.fault.Cycle, n.fault.Problem}
	case n.since[KindInData] != Never:
		return Wait{BoundaryNetwork.stream(KindInData) + "_tready", n.since[KindInData], fmt.Sprintf("low, with a line of a datagram offered, and %d behind it", max(n.lines, 1)-1)}
	case n.since[KindInMeta] != Never:
		return Wait{BoundaryNetwork.stream(KindInMeta) + "_TREADY", n.since[KindInMeta], "low, with the metadata of a datagram offered"}
	case n.busy:
		return Wait{BoundaryNetwork.stream(KindOutData) + "_tvalid", n.moved, fmt.Sprintf("low, after %d bytes of the datagram to rank %d (cycle %d)", n.come, n.current.dstRank(), n.current.cycle)}
	case len(n.queued) > 0:
		return Wait{BoundaryNetwork.stream(KindOutData) + "_tvalid", n.moved, fmt.Sprintf("low, with the metadata of a datagram to rank %d taken", n.queued[0].dstRank())}
	case len(n.early) > 0:
		return Wait{BoundaryNetwork.stream(KindOutMeta) + "_TVALID", n.moved, fmt.Sprintf("low, with %d lines of a datagram taken", len(n.early))}
	case !n.isOpen():
		return Wait{"poROL_Nrc_Udp_Rx_ports", n.changed, fmt.Sprintf("bit %d is 0: port %d is closed", n.ports[n.rank]-protocol.Port, n.ports[n.rank])}
	}
	return Wait{Since: n.moved, Text: "no datagram is under way"}
}
