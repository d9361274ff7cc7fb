package pcapng

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// Options of pcapng blocks used here.
const (
	optEnd         = 0
	optComment     = 1
	optApplication = 4  // of a section
	optResolution  = 9  // of an interface
	optOffset      = 14 // of an interface
	optEndTime     = 3  // of statistics
	optDropped     = 5  // of statistics
)

// maxOption is the maximum length in bytes of one option.
const maxOption = 1<<16 - 1

// ngWriter writes a pcapng section with one interface for raw IP packets. Time stamps are in nanoseconds. pcapgo's
// writer is not used because it cannot write comments.
type ngWriter struct {
	w     *bufio.Writer
	block []byte // the current block
	err   error
}

// newNgWriter begins a section.
func newNgWriter(w io.Writer, options WriterOptions) *ngWriter {
	writer := &ngWriter{w: bufio.NewWriter(w)}
	writer.beginBlock(blockSection)
	writer.appendUint32(byteOrderMagic)
	writer.appendUint32(1)          // version 1.0
	writer.appendUint32(0xffffffff) // unknown length of the section
	writer.appendUint32(0xffffffff)
	writer.appendOption(optComment, options.Comment)
	writer.appendOption(optApplication, applicationName)
	writer.endBlock()
	writer.beginBlock(blockInterface)
	writer.appendUint32(uint32(LinkRaw))
	writer.appendUint32(uint32(options.SnapLength))
	writer.appendOption(optResolution, string([]byte{9}))
	writer.endBlock()
	return writer
}

// writePacket writes a packet whose length on the wire is wire bytes. data is the recorded part, which may be shorter.
func (g *ngWriter) writePacket(at time.Time, data []byte, wire int, comments []string) {
	g.beginBlock(blockEnhancedPacket)
	g.appendUint32(0) // the interface
	g.appendTime(at)
	g.appendUint32(uint32(len(data)))
	g.appendUint32(uint32(wire))
	g.appendPadded(data)
	for _, c := range comments {
		g.appendOption(optComment, c)
	}
	g.endBlock()
}

// writeStatistics writes the end time of the recording and the number of missing packets.
func (g *ngWriter) writeStatistics(record *EndRecord) {
	g.beginBlock(blockStatistics)
	g.appendUint32(0)
	g.appendTime(record.Time)
	for _, c := range record.Comments {
		g.appendOption(optComment, c)
	}
	if !record.Time.IsZero() {
		g.appendOption(optEndTime, string(g.timeBytes(record.Time)))
	}
	if record.LostPackets > 0 {
		g.appendOption(optDropped, string(binary.LittleEndian.AppendUint64(nil, record.LostPackets)))
	}
	g.endBlock()
}

func (g *ngWriter) beginBlock(kind uint32) {
	g.block = binary.LittleEndian.AppendUint32(g.block[:0], kind)
	g.appendUint32(0) // the length, set by endBlock
}

func (g *ngWriter) appendUint32(v uint32) { g.block = binary.LittleEndian.AppendUint32(g.block, v) }

func (g *ngWriter) appendTime(at time.Time) { g.block = append(g.block, g.timeBytes(at)...) }

// timeBytes returns a time stamp of pcapng: two words of 32 bits, the upper one first, whatever the byte order of the
// section. The zero time is written as 0.
func (g *ngWriter) timeBytes(at time.Time) []byte {
	ns := uint64(0)
	if !at.IsZero() {
		ns = uint64(at.UnixNano())
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(ns>>32))
	return binary.LittleEndian.AppendUint32(b, uint32(ns))
}

// appendPadded appends b, padded to a multiple of 4 bytes.
func (g *ngWriter) appendPadded(b []byte) {
	g.block = append(g.block, b...)
	for len(g.block)%4 != 0 {
		g.block = append(g.block, 0)
	}
}

// appendOption appends an option unless its value is empty.
func (g *ngWriter) appendOption(code uint16, value string) {
	if value == "" {
		return
	}
	value = value[:min(len(value), maxOption)]
	g.block = binary.LittleEndian.AppendUint16(g.block, code)
	g.block = binary.LittleEndian.AppendUint16(g.block, uint16(len(value)))
	g.appendPadded([]byte(value))
}

// endBlock writes the block. It adds an end of options even to a block without options, as the format allows.
func (g *ngWriter) endBlock() {
	g.appendUint32(optEnd)
	g.appendUint32(uint32(len(g.block) + 4))
	copy(g.block[4:], g.block[len(g.block)-4:])
	if _, err := g.w.Write(g.block); err != nil && g.err == nil {
		g.err = fmt.Errorf("write recording: %w", err)
	}
}

// flush writes buffered blocks.
func (g *ngWriter) flush() error {
	if err := g.w.Flush(); err != nil && g.err == nil {
		g.err = fmt.Errorf("write recording: %w", err)
	}
	return g.err
}
