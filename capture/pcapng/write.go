package pcapng

import (
	"fmt"
	"io"
	"net/netip"
	"time"
)

// Writer writes units to a pcapng file: as IP packets, without the link layer,
// VLAN tags, tunnels and fragmentation that they were recorded in.
type Writer struct {
	ng  *ngWriter
	buf []byte
	// seq is the next sequence number of each direction of a connection.
	seq map[[2]netip.AddrPort]uint32
}

// WriterOptions say what a file is. The zero WriterOptions are good for packets that were not cut.
type WriterOptions struct {
	// Comment says what the file is, or why there is one.
	Comment string
	// SnapLength is how many bytes of each packet are recorded at most, IP header included; 0: all.
	SnapLength int
}

// Ending is what is known at the end of a recording.
type Ending struct {
	// Time is when the recording ended, which may be long after the last packet.
	Time time.Time
	// Lost counts packets that are not in it.
	Lost uint64
	// Comments are about the recording as a whole.
	Comments []string
}

// NewWriter begins a file. What cannot be written is an error of Unit or Flush.
func NewWriter(w io.Writer, o WriterOptions) *Writer {
	return &Writer{ng: newNgWriter(w, o), seq: map[[2]netip.AddrPort]uint32{}}
}

// Unit adds a unit: one packet, or several if it is a piece of a stream that is longer.
func (w *Writer) Unit(u *Unit) error {
	h := headers{proto: udpNumber, src: u.Src, dst: u.Dst}
	if u.Proto == TCP {
		h.proto = tcpNumber
	}
	most := h.maxPayload()
	if u.Proto == UDP && u.Wire() > most {
		return fmt.Errorf("packet %d: a datagram of %d bytes, of at most %d", u.Packet, u.Wire(), most)
	}
	there, back := [2]netip.AddrPort{u.Src, u.Dst}, [2]netip.AddrPort{u.Dst, u.Src}
	h.seq, h.ack = w.seq[there]+uint32(u.Gap), w.seq[back]
	data, comments := u.Data, u.Comments
	for left := u.Wire(); ; {
		length := min(left, most)
		part := data[:min(length, len(data))]
		// The headers have the length on the wire, so that a reader knows it too.
		w.buf = append(h.append(w.buf[:0], part, length), part...)
		w.ng.packet(u.Time, w.buf, len(w.buf)-len(part)+length, comments)
		h.seq += uint32(length)
		data, comments, left = data[len(part):], nil, left-length
		if left == 0 {
			break
		}
	}
	if u.Proto == TCP {
		w.seq[there] = h.seq
	}
	return w.ng.err
}

// End adds how the recording ended. It comes last.
func (w *Writer) End(e *Ending) { w.ng.statistics(e) }

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.ng.flush() }
