package pcapng

import (
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// applicationName is how a file says that it was written here.
const applicationName = "zrlmpid"

// About are the properties of a file, beside its packets. Those that a file does not have are zero.
type About struct {
	// Own: a Writer wrote the file, so that it has no packets but ZRLMPI's.
	Own     bool
	Comment string
	// End of the recording.
	End time.Time
	// Number of packets that were lost.
	Dropped int64
}

// The longest options that are read, in bytes, of a packet and of another block. What is longer is ignored.
const (
	maxPacketOptions = 16 << 10
	maxBlockOptions  = 64 << 10
)

// options yields the options of a block up to one that is invalid.
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

// describe reads the options of the section header at hand.
func (g *ngReader) describe(total uint32) {
	const fixed = 24
	g.about = About{}
	if total > fixed+4+maxBlockOptions {
		return
	}
	b, err := g.w.need(int(total) - 4)
	if err != nil {
		return // which closeBlock reports
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

// comments returns those of the packet at hand, whose data ends at offset end of a block of so many bytes.
func (g *ngReader) comments(end int, total uint32) (list []string) {
	from := (end + 3) &^ 3
	left := int64(total) - 4 - int64(from)
	if left < 4 || left > maxPacketOptions {
		return nil
	}
	b, err := g.w.need(from + int(left))
	if err != nil {
		return nil // which closeBlock reports, behind the packet
	}
	for code, value := range g.options(b[from:]) {
		if code == optComment {
			list = append(list, text(value))
		}
	}
	return list
}

// statistics reads when the recording of an interface ended, and how many packets it has lost.
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

// text returns what a file has as a text, without what a terminal would act on.
func text(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r < 0x7f || r > 0x9f && r != utf8.RuneError {
			return r
		}
		return -1
	}, string(b))
}
