package capturetest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"time"
)

// Format is a variant of a file format.
type Format struct {
	BigEndian bool
	// Nano selects time stamps in nanoseconds. It applies to pcap only.
	Nano bool
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (f Format) order() byteOrder {
	if f.BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Pcap returns the recording as a pcap file. It has the link type of the first interface, and the packets of all
// interfaces.
func (c *Capture) Pcap(f Format) []byte {
	o := f.order()
	magic, tick := uint32(0xa1b2c3d4), time.Microsecond
	if f.Nano {
		magic, tick = 0xa1b23c4d, time.Nanosecond
	}
	b := appendPcapHeader(nil, o, magic, c.Interfaces[0].LinkType)
	for _, p := range c.Packets {
		b = o.AppendUint32(b, uint32(p.Time.Unix()))
		b = o.AppendUint32(b, uint32(p.Time.Nanosecond()/int(tick)))
		b = o.AppendUint32(b, uint32(len(p.Data)))
		b = o.AppendUint32(b, uint32(len(p.Data)+p.Unrecorded))
		b = append(b, p.Data...)
	}
	return b
}

func appendPcapHeader(b []byte, o byteOrder, magic uint32, linkType int) []byte {
	b = o.AppendUint32(b, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = o.AppendUint64(b, 0)
	b = o.AppendUint32(b, 256<<10)
	return o.AppendUint32(b, uint32(linkType))
}

// Pcapng returns the recording as a pcapng file with one section.
func (c *Capture) Pcapng(f Format) []byte {
	o := f.order()
	section := o.AppendUint32(nil, 0x1a2b3c4d)
	section = o.AppendUint16(section, 1)
	section = o.AppendUint16(section, 0)
	section = o.AppendUint64(section, math.MaxUint64)
	b := appendBlock(nil, o, 0x0a0d0d0a, section)
	for _, iface := range c.Interfaces {
		b = appendBlock(b, o, 1, iface.block(o))
	}
	for _, p := range c.Packets {
		ticks := c.Interfaces[p.Interface].ticks(p.Time)
		body := o.AppendUint32(nil, uint32(p.Interface))
		body = o.AppendUint32(body, uint32(ticks>>32))
		body = o.AppendUint32(body, uint32(ticks))
		body = o.AppendUint32(body, uint32(len(p.Data)))
		body = o.AppendUint32(body, uint32(len(p.Data)+p.Unrecorded))
		b = appendBlock(b, o, 6, append(body, p.Data...))
	}
	return b
}

// appendBlock appends a block with the given body, which it pads.
func appendBlock(b []byte, o byteOrder, kind uint32, body []byte) []byte {
	padding := -len(body) & 3
	total := uint32(12 + len(body) + padding)
	b = o.AppendUint32(b, kind)
	b = o.AppendUint32(b, total)
	b = append(b, body...)
	b = append(b, make([]byte, padding)...)
	return o.AppendUint32(b, total)
}

func (i Interface) block(o byteOrder) []byte {
	b := o.AppendUint16(nil, uint16(i.LinkType))
	b = o.AppendUint16(b, 0)
	b = o.AppendUint32(b, 256<<10)
	const name, resolution, offset = 2, 9, 14
	b = o.AppendUint16(b, name)
	b = append(o.AppendUint16(b, 3), "if0\x00"...)
	if i.Resolution != 0 {
		b = o.AppendUint16(b, resolution)
		b = append(o.AppendUint16(b, 1), i.Resolution, 0, 0, 0)
	}
	if i.Offset != 0 {
		b = o.AppendUint16(b, offset)
		b = o.AppendUint64(o.AppendUint16(b, 8), uint64(i.Offset))
	}
	return o.AppendUint32(b, 0)
}

// ticks converts a time to ticks of the interface's clock.
func (i Interface) ticks(t time.Time) uint64 {
	r := i.Resolution
	if r == 0 {
		r = 6
	}
	second := math.Pow10(int(r))
	if r&0x80 != 0 {
		second = math.Ldexp(1, int(r&0x7f))
	}
	ns := uint64(t.Nanosecond())
	return uint64(t.Unix()-i.Offset)*uint64(second) + uint64(math.Round(float64(ns)*second/1e9))
}

// Gzip compresses a file.
func Gzip(file []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(file) //nolint:errcheck // a buffer takes everything
	z.Close()
	return b.Bytes()
}
