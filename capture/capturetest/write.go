package capturetest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"time"
)

// Format describes a variant of a file format for recordings.
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

// Pcap returns the recording as a pcap file. The file contains the packets of all interfaces, with the link type of the
// first one.
func (c *Capture) Pcap(f Format) []byte {
	order := f.order()
	magic, tick := uint32(0xa1b2c3d4), time.Microsecond
	if f.Nano {
		magic, tick = 0xa1b23c4d, time.Nanosecond
	}
	b := appendPcapHeader(nil, order, magic, c.Interfaces[0].LinkType)
	for _, p := range c.Packets {
		b = order.AppendUint32(b, uint32(p.Time.Unix()))
		b = order.AppendUint32(b, uint32(p.Time.Nanosecond()/int(tick)))
		b = order.AppendUint32(b, uint32(len(p.Data)))
		b = order.AppendUint32(b, uint32(len(p.Data)+p.Unrecorded))
		b = append(b, p.Data...)
	}
	return b
}

func appendPcapHeader(b []byte, order byteOrder, magic uint32, linkType int) []byte {
	b = order.AppendUint32(b, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = order.AppendUint64(b, 0)
	b = order.AppendUint32(b, 256<<10)
	return order.AppendUint32(b, uint32(linkType))
}

// Pcapng returns the recording as a pcapng file with one section.
func (c *Capture) Pcapng(f Format) []byte {
	order := f.order()
	section := order.AppendUint32(nil, 0x1a2b3c4d)
	section = order.AppendUint16(section, 1)
	section = order.AppendUint16(section, 0)
	section = order.AppendUint64(section, math.MaxUint64)
	b := appendBlock(nil, order, 0x0a0d0d0a, section)
	for _, iface := range c.Interfaces {
		b = appendBlock(b, order, 1, iface.block(order))
	}
	for _, packet := range c.Packets {
		ticks := c.Interfaces[packet.Interface].ticks(packet.Time)
		body := order.AppendUint32(nil, uint32(packet.Interface))
		body = order.AppendUint32(body, uint32(ticks>>32))
		body = order.AppendUint32(body, uint32(ticks))
		body = order.AppendUint32(body, uint32(len(packet.Data)))
		body = order.AppendUint32(body, uint32(len(packet.Data)+packet.Unrecorded))
		b = appendBlock(b, order, 6, append(body, packet.Data...))
	}
	return b
}

// appendBlock appends a block with the given body, which it pads to a multiple of 4 bytes.
func appendBlock(b []byte, order byteOrder, kind uint32, body []byte) []byte {
	padding := -len(body) & 3
	total := uint32(12 + len(body) + padding)
	b = order.AppendUint32(b, kind)
	b = order.AppendUint32(b, total)
	b = append(b, body...)
	b = append(b, make([]byte, padding)...)
	return order.AppendUint32(b, total)
}

func (i Interface) block(order byteOrder) []byte {
	b := order.AppendUint16(nil, uint16(i.LinkType))
	b = order.AppendUint16(b, 0)
	b = order.AppendUint32(b, 256<<10)
	const name, resolution, offset = 2, 9, 14
	b = order.AppendUint16(b, name)
	b = append(order.AppendUint16(b, 3), "if0\x00"...)
	if i.Resolution != 0 {
		b = order.AppendUint16(b, resolution)
		b = append(order.AppendUint16(b, 1), i.Resolution, 0, 0, 0)
	}
	if i.Offset != 0 {
		b = order.AppendUint16(b, offset)
		b = order.AppendUint64(order.AppendUint16(b, 8), uint64(i.Offset))
	}
	return order.AppendUint32(b, 0)
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
	z.Write(file) //nolint:errcheck // a buffer accepts everything
	z.Close()
	return b.Bytes()
}
