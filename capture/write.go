package capture

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// Writer writes units to a pcapng file: as IP packets, without the link layer,
// VLAN tags, tunnels and fragmentation that they were recorded in.
type Writer struct {
	ng  *ngWriter
	buf gopacket.SerializeBuffer
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
	return &Writer{ng: newNgWriter(w, o), buf: gopacket.NewSerializeBuffer(), seq: map[[2]netip.AddrPort]uint32{}}
}

// Unit adds a unit.
func (w *Writer) Unit(u *Unit) error {
	proto := layers.IPProtocolUDP
	if u.Proto == TCP {
		proto = layers.IPProtocolTCP
	}
	network, ok := ipLayer(u, proto).(interface {
		gopacket.NetworkLayer
		gopacket.SerializableLayer
	})
	if !ok {
		return fmt.Errorf("packet %d: %v and %v are not addresses of one IP version", u.Packet, u.Src, u.Dst)
	}
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	payload := u.Data
	if u.Truncated > 0 {
		// The headers have the length on the wire, so that a reader knows it too.
		payload = append(bytes.Clone(payload), make([]byte, u.Truncated)...)
	}
	all := []gopacket.SerializableLayer{network, w.transport(u, network), gopacket.Payload(payload)}
	if err := gopacket.SerializeLayers(w.buf, opts, all...); err != nil {
		return fmt.Errorf("packet %d: %w", u.Packet, err)
	}
	packet := w.buf.Bytes()
	recorded := packet[:len(packet)-u.Truncated]
	w.ng.packet(u.Time, recorded, len(packet), u.Comments)
	return w.ng.err
}

// End adds how the recording ended. It comes last.
func (w *Writer) End(e *Ending) { w.ng.statistics(e) }

func ipLayer(u *Unit, proto layers.IPProtocol) gopacket.Layer {
	src, dst := u.Src.Addr(), u.Dst.Addr()
	if src.Is4() && dst.Is4() {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: proto, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	s, d := src.As16(), dst.As16()
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: proto, SrcIP: s[:], DstIP: d[:]}
}

func (w *Writer) transport(u *Unit, network gopacket.NetworkLayer) gopacket.SerializableLayer {
	if u.Proto == UDP {
		udp := &layers.UDP{SrcPort: layers.UDPPort(u.Src.Port()), DstPort: layers.UDPPort(u.Dst.Port())}
		_ = udp.SetNetworkLayerForChecksum(network) // an IP layer always fits
		return udp
	}
	there, back := [2]netip.AddrPort{u.Src, u.Dst}, [2]netip.AddrPort{u.Dst, u.Src}
	seq := w.seq[there] + uint32(u.Gap)
	w.seq[there] = seq + uint32(u.length())
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(u.Src.Port()), DstPort: layers.TCPPort(u.Dst.Port()),
		Seq: seq, Ack: w.seq[back], ACK: true, PSH: true, Window: 65535,
	}
	_ = tcp.SetNetworkLayerForChecksum(network)
	return tcp
}

// Flush writes what is buffered.
func (w *Writer) Flush() error { return w.ng.flush() }
