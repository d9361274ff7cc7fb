package pcapng

import (
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// applicationName is the value of the option shb_userappl that marks files written by a Writer.
const applicationName = "zrlmpid"

// About holds the properties of a file. Properties that the file does not contain are zero.
type About struct {
	// Own is true if a Writer wrote the file. All packets in such a file are ZRLMPI packets.
	Own     bool
	Comment string
	// End of the recording.
	End time.Time
	// Number of packets lost by the recorder.
	Dropped int64
}

// Maximum length in bytes of the options of a packet block and of any other block. Longer options are ignored.
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

// describe reads the options of the current section header.
func (g *ngReader) describe(total uint32) {
	const fixed = 24
	g.about = About{}
	if total > fixed+4+maxBlockOptions {
		return
	}
	b, err := g.w.need(int(total) - 4)
	if err != nil {
		return // closeBlock reports the error
	}
	for code, value := range g.options(b[fixed:]) {
		switch code {
		case optComment:
			g.about.Comment = text(value)
		case optApplication:
			g.about.Own = string(value) == applicationName
		}
	}
}

// comments returns the comments on the current packet, whose block has total bytes. The packet's data ends at offset
// end of the block.
func (g *ngReader) comments(end int, total uint32) (list []string) {
	from := (end + 3) &^ 3
	left := int64(total) - 4 - int64(from)
	if left < 4 || left > maxPacketOptions {
		return nil
	}
	b, err := g.w.need(from + int(left))
	if err != nil {
		return nil // closeBlock reports the error after the packet
	}
	for code, value := range g.options(b[from:]) {
		if code == optComment {
			list = append(list, text(value))
		}
	}
	return list
}

// statistics reads the end time, the number of lost packets and notes from an interface statistics block.
func (g *ngReader) statistics(total uint32) error {
	const fixed = 20
	if total < fixed+4 || total > fixed+4+maxBlockOptions {
		g.opened(total, 8)
		g.w.advance(8)
		return nil
	}
	b, err := g.w.need(int(total) - 4)
	if err != nil {
		return whole(err)
	}
	clock := defaultClock()
	if id := g.order.Uint32(b[8:]); int64(id) < int64(len(g.ifaces)) {
		clock = g.ifaces[id].clock
	}
	for code, value := range g.options(b[fixed:]) {
		switch {
		case code == optEndTime && len(value) == 8:
			g.about.End = clock.time(uint64(g.order.Uint32(value))<<32 | uint64(g.order.Uint32(value[4:])))
		case code == optComment && g.about.Own && g.onNote != nil:
			at := clock.time(uint64(g.order.Uint32(b[12:]))<<32 | uint64(g.order.Uint32(b[16:])))
			if n := parseRankNote(text(value), at); n != nil {
				g.onNote(n)
			}
		case code == optDropped && len(value) == 8:
			g.about.Dropped = int64(min(g.order.Uint64(value), 1<<62))
		}
	}
	g.opened(total, len(b))
	g.w.advance(len(b))
	return nil
}

// text converts text from a file to a string. It removes control characters because they could affect a terminal.
func text(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r < 0x7f || r > 0x9f && r != utf8.RuneError {
			return r
		}
		return -1
	}, string(b))
}
