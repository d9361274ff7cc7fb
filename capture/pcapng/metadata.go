package pcapng

import (
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// applicationName is the value of the option shb_userappl that marks files written by a Writer.
const applicationName = "zrlmpid"

// Metadata describes a file. Properties that the file does not contain are zero.
type Metadata struct {
	// FromWriter is true if a Writer wrote the file. All packets in such a file are ZRLMPI packets.
	FromWriter bool
	Comment    string
	// End of the recording.
	End time.Time
	// Number of packets lost by the recorder.
	Dropped int64
}

// Maximum length in bytes of the options of a packet block, and of the options of any other block. Longer options are
// ignored.
const (
	maxPacketOptions = 16 << 10
	maxBlockOptions  = 64 << 10
)

// options yields the options of a block up to the first invalid one.
func (g *ngReader) options(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			code, length := g.order.Uint16(b), int(g.order.Uint16(b[2:]))
			b = b[4:]
			if code == optEnd || length > len(b) || !yield(code, b[:length]) {
				return
			}
			b = b[min(len(b), (length+3)&^3):]
		}
	}
}

// readMetadata reads the options of the current section header.
func (g *ngReader) readMetadata(total uint32) {
	const fixed = 24
	g.metadata = Metadata{}
	if total > fixed+4+maxBlockOptions {
		return
	}
	b, err := g.w.peek(int(total) - 4)
	if err != nil {
		return // closeBlock reports the error
	}
	for code, value := range g.options(b[fixed:]) {
		switch code {
		case optComment:
			g.metadata.Comment = sanitizeText(value)
		case optApplication:
			g.metadata.FromWriter = string(value) == applicationName
		}
	}
}

// readComments returns the comments on the current packet. total is the length of the packet's block, and end is the
// position in the block at which the packet's data ends.
func (g *ngReader) readComments(end int, total uint32) (list []string) {
	from := (end + 3) &^ 3
	left := int64(total) - 4 - int64(from)
	if left < 4 || left > maxPacketOptions {
		return nil
	}
	b, err := g.w.peek(from + int(left))
	if err != nil {
		return nil // closeBlock reports the error after the packet
	}
	for code, value := range g.options(b[from:]) {
		if code == optComment {
			list = append(list, sanitizeText(value))
		}
	}
	return list
}

// readStatistics reads the end time, the number of lost packets and notes from an interface statistics block.
func (g *ngReader) readStatistics(total uint32) error {
	const fixed = 20
	if total < fixed+4 || total > fixed+4+maxBlockOptions {
		g.startBlock(total, 8)
		g.w.advance(8)
		return nil
	}
	b, err := g.w.peek(int(total) - 4)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	clock := defaultClock()
	if id := g.order.Uint32(b[8:]); int64(id) < int64(len(g.ifaces)) {
		clock = g.ifaces[id].clock
	}
	for code, value := range g.options(b[fixed:]) {
		switch {
		case code == optEndTime && len(value) == 8:
			g.metadata.End = clock.toTime(uint64(g.order.Uint32(value))<<32 | uint64(g.order.Uint32(value[4:])))
		case code == optComment && g.metadata.FromWriter && g.onNote != nil:
			at := clock.toTime(uint64(g.order.Uint32(b[12:]))<<32 | uint64(g.order.Uint32(b[16:])))
			if n := parseRankNote(sanitizeText(value), at); n != nil {
				g.onNote(n)
			}
		case code == optDropped && len(value) == 8:
			g.metadata.Dropped = int64(min(g.order.Uint64(value), 1<<62))
		}
	}
	g.startBlock(total, len(b))
	g.w.advance(len(b))
	return nil
}

// sanitizeText converts text from a file to a string. It removes control characters because they could affect a
// terminal.
func sanitizeText(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r < 0x7f || r > 0x9f && r != utf8.RuneError {
			return r
		}
		return -1
	}, string(b))
}
