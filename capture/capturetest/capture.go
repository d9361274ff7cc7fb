package capturetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/google/gopacket/pcapgo"
)

// Packet is one recorded packet.
type Packet struct {
	Time time.Time
	// Data is the recorded part of the packet.
	Data []byte
	// Unrecorded is the number of unrecorded bytes at the end of the packet.
	Unrecorded int
	// Interface is the index of the interface. It must be 0 in pcap files.
	Interface int
}

// Interface describes an interface of a pcapng recording.
type Interface struct {
	LinkType int
	// Resolution is the value of option if_tsresol. For 0, the file omits the option, and the resolution is a
	// microsecond.
	Resolution byte
	// Offset is the value of option if_tsoffset in seconds.
	Offset int64
}

// Capture is a recording under construction. Packets are numbered from 1.
type Capture struct {
	Interfaces []Interface
	Packets    []Packet
}

// New returns an empty recording with one interface.
func New(linkType int) *Capture {
	return &Capture{Interfaces: []Interface{{LinkType: linkType}}}
}

// ReadFile reads a small pcap file supported by pcapgo.
func ReadFile(path string) (*Capture, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reader, err := pcapgo.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	capture := New(int(reader.LinkType()))
	for {
		data, info, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return capture, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		capture.Packets = append(capture.Packets, Packet{Time: info.Timestamp, Data: data,
			Unrecorded: info.Length - len(data)})
	}
}

// Add appends frames to the recording. Each frame includes its link-layer header.
func (c *Capture) Add(t time.Time, frames ...[]byte) *Capture {
	for _, f := range frames {
		c.Packets = append(c.Packets, Packet{Time: t, Data: f})
	}
	return c
}

// AddIP appends IP packets in frames of the first interface's link type.
func (c *Capture) AddIP(t time.Time, packets ...[]byte) *Capture {
	for _, ip := range packets {
		c.Add(t, Frame(c.Interfaces[0].LinkType, ip))
	}
	return c
}

// AddUDP appends a UDP datagram.
func (c *Capture) AddUDP(t time.Time, src, dst netip.AddrPort, payload []byte) *Capture {
	return c.AddIP(t, UDP(src, dst, payload))
}

// AddTCP appends a TCP segment.
func (c *Capture) AddTCP(t time.Time, src, dst netip.AddrPort, s Segment) *Capture {
	return c.AddIP(t, TCP(src, dst, s))
}

// Drop removes packet n.
func (c *Capture) Drop(n int) *Capture {
	c.Packets = slices.Delete(c.Packets, n-1, n)
	return c
}

// Duplicate inserts a copy of packet n immediately after that packet.
func (c *Capture) Duplicate(n int) *Capture {
	c.Packets = slices.Insert(c.Packets, n, c.Packets[n-1])
	return c
}

// Swap swaps the contents of packets n and m, but not their times.
func (c *Capture) Swap(n, m int) *Capture {
	a, b := &c.Packets[n-1], &c.Packets[m-1]
	*a, *b = *b, *a
	a.Time, b.Time = b.Time, a.Time
	return c
}

// Edit replaces the bytes of packet n with the result of edit, which receives a copy.
func (c *Capture) Edit(n int, edit func([]byte) []byte) *Capture {
	p := &c.Packets[n-1]
	p.Data = edit(bytes.Clone(p.Data))
	return c
}

// Truncate truncates each packet to its first n bytes, as a snapshot length does in a real recorder.
func (c *Capture) Truncate(n int) *Capture {
	for i := range c.Packets {
		p := &c.Packets[i]
		if cut := len(p.Data) - n; cut > 0 {
			p.Data, p.Unrecorded = p.Data[:n], p.Unrecorded+cut
		}
	}
	return c
}

// Map returns a recording of the given link type. It replaces each packet by the packets that f returns, at the same
// time. f may return nil to drop a packet.
func (c *Capture) Map(linkType int, f func(frame []byte) [][]byte) *Capture {
	m := New(linkType)
	for _, p := range c.Packets {
		m.Add(p.Time, f(p.Data)...)
	}
	return m
}
