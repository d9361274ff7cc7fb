package pcapng

import (
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Writer writes units to a pcapng file as IP packets. It does not reproduce the link layer, VLAN tags, tunnels and
// fragmentation of the original packets.
type Writer struct {
	ng  *ngWriter
	buf []byte
	// seq holds the next sequence number for each direction of a TCP connection.
	seq map[[2]netip.AddrPort]uint32
}

// WriterOptions configure a Writer. The zero value is right for complete packets.
type WriterOptions struct {
	// Comment describes the file, or explains why it was recorded.
	Comment string
	// SnapLength is the maximum number of recorded bytes per packet, including the IP header. 0 means no limit.
	SnapLength int
}

// EndRecord holds the facts known only at the end of a recording.
type EndRecord struct {
	// Time is the end of the recording, which may be long after the last packet.
	Time time.Time
	// LostPackets counts packets missing from the recording.
	LostPackets uint64
	// Comments lists comments on the recording as a whole.
	Comments []string
}

// NewWriter begins a file. WriteUnit and Flush return errors from w.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return &Writer{ng: newNgWriter(w, o), seq: map[[2]netip.AddrPort]uint32{}}
}

// WriteUnit adds a unit as one packet. If a piece of a stream is too long for one packet, WriteUnit splits it into
// several.
func (w *Writer) WriteUnit(unit *Unit) error {
	h := headers{proto: udpNumber, src: unit.Src, dst: unit.Dst}
	if unit.Proto == TCP {
		h.proto = tcpNumber
	}
	most := h.maxPayload()
	if unit.Proto == UDP && unit.WireLen() > most {
		return fmt.Errorf("packet %d: a datagram of %d bytes, of at most %d", unit.Packet, unit.WireLen(), most)
	}
	there, back := [2]netip.AddrPort{unit.Src, unit.Dst}, [2]netip.AddrPort{unit.Dst, unit.Src}
	h.seq, h.ack = w.seq[there]+uint32(unit.Gap), w.seq[back]
	data, comments := unit.Data, unit.Comments
	for left := unit.WireLen(); ; {
		length := min(left, most)
		part := data[:min(length, len(data))]
		// The headers contain the length on the wire so that a reader detects the truncation.
		w.buf = append(h.append(w.buf[:0], part, length), part...)
		w.ng.writePacket(unit.Time, w.buf, len(w.buf)-len(part)+length, comments)
		h.seq += uint32(length)
		data, comments, left = data[len(part):], nil, left-length
		if left == 0 {
			break
		}
	}
	if unit.Proto == TCP {
		w.seq[there] = h.seq
	}
	return w.ng.err
}

// WriteEnd adds the end of the recording. It must be the last call before Flush.
func (w *Writer) WriteEnd(e *EndRecord) { w.ng.writeStatistics(e) }

// Flush writes buffered data.
func (w *Writer) Flush() error { return w.ng.flush() }
