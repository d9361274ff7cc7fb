package pcapng

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxPacket is the maximum length in bytes of a recorded packet, as in libpcap. No network carries longer packets, so a
// greater length means that the file is corrupt.
const MaxPacket = 256 << 10

// Magic numbers of the two file formats: the first four bytes, most significant byte first.
const (
	magicMicro        = 0xa1b2c3d4
	magicMicroSwapped = 0xd4c3b2a1
	magicNano         = 0xa1b23c4d
	magicNanoSwapped  = 0x4d3cb2a1
	magicNG           = 0x0a0d0d0a
)

const (
	pcapFileHeader   = 24
	pcapRecordHeader = 16
	// The upper bits of the link type field describe a frame check sequence.
	pcapLinkTypeMask = 0x03ffffff
)

// NewReader returns a reader of r, a pcap or pcapng file. If onNote is not nil, Reader.Next calls onNote with each note
// in a file written by a Writer, in the order of the file.
func NewReader(r io.Reader, onNote func(RankNote)) (Reader, error) {
	w := newWindow(r)
	start, err := w.peek(4)
	if err != nil && errors.Is(w.err, io.EOF) {
		return nil, &Error{Reason: explainForeign(w.buf[:w.hi])}
	}
	if err != nil {
		return nil, &Error{Err: err}
	}
	switch binary.BigEndian.Uint32(start) {
	case magicMicro:
		return newPcapReader(w, binary.BigEndian, time.Microsecond)
	case magicNano:
		return newPcapReader(w, binary.BigEndian, time.Nanosecond)
	case magicMicroSwapped:
		return newPcapReader(w, binary.LittleEndian, time.Microsecond)
	case magicNanoSwapped:
		return newPcapReader(w, binary.LittleEndian, time.Nanosecond)
	case magicNG:
		return &ngReader{w: w, order: binary.LittleEndian, onNote: onNote}, nil
	}
	w.peek(16) //nolint:errcheck // the message shows at most the available bytes
	return nil, &Error{Reason: explainForeign(w.buf[:min(w.hi, 16)])}
}

// pcapReader reads the classic pcap format. pcapgo's reader is not used because it allocates the snapshot length
// claimed by the file, up to 4 GiB, and rejects files with packets longer than that length.
type pcapReader struct {
	w     *window
	order binary.ByteOrder
	tick  time.Duration
	link  LinkType
	// recordLen is the length, including the header, of the record that was returned last.
	recordLen int
}

func newPcapReader(w *window, order binary.ByteOrder, tick time.Duration) (Reader, error) {
	h, err := w.peek(pcapFileHeader)
	if err != nil {
		return nil, &Error{Offset: 0, Err: err}
	}
	if major := order.Uint16(h[4:]); major != 2 {
		return nil, &Error{Reason: fmt.Sprintf("pcap file of version %d.%d, not 2", major, order.Uint16(h[6:]))}
	}
	link := LinkType(order.Uint32(h[20:]) & pcapLinkTypeMask)
	if !link.IsSupported() {
		return nil, &Error{Reason: fmt.Sprintf("recording of link type %d, which carries no IP that can be read here: "+
			"record on an Ethernet or IP interface", link)}
	}
	w.advance(pcapFileHeader)
	return &pcapReader{w: w, order: order, tick: tick, link: link}, nil
}

// Metadata implements Reader. The format does not store properties.
func (p *pcapReader) Metadata() *Metadata { return new(Metadata) }

// Next implements Reader.
func (p *pcapReader) Next(rec *Record) error {
	p.w.advance(p.recordLen)
	p.recordLen = 0
	h, err := p.w.peek(pcapRecordHeader)
	if err != nil {
		return p.wrapError(err)
	}
	sec, frac := p.order.Uint32(h), p.order.Uint32(h[4:])
	length, wire := p.order.Uint32(h[8:]), p.order.Uint32(h[12:])
	if length > MaxPacket {
		return &Error{Offset: p.w.offset, Reason: tooLong(length)}
	}
	n := pcapRecordHeader + int(length)
	b, err := p.w.peek(n)
	if err != nil {
		return p.wrapError(err)
	}
	p.recordLen = n
	rec.Time = time.Unix(int64(sec), int64(frac)*int64(p.tick)).UTC()
	rec.Link = p.link
	rec.Data = b[pcapRecordHeader:]
	rec.WireLen = int(wire)
	return nil
}

// wrapError wraps err in an *Error with the offset of the unreadable record, unless err is io.EOF.
func (p *pcapReader) wrapError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return &Error{Offset: p.w.offset, Err: err}
}

func tooLong(length uint32) string {
	return fmt.Sprintf("a packet claims %d bytes, more than any network carries", length)
}

// foreignFormats lists file formats that users mistake for recordings.
var foreignFormats = []struct{ start, is string }{
	{"\xa1\xb2\xcd\x34", "a pcap file with Alexey Kuznetzov's changes"},
	{"\x34\xcd\xb2\xa1", "a pcap file with Alexey Kuznetzov's changes"},
	{"snoop\x00\x00\x00", "a snoop file"},
	{"BZh", "compressed with bzip2"},
	{"PK\x03\x04", "a zip archive"},
}

// explainForeign explains that a file is not a recording and, if known, names its format. start is the beginning of the
// file.
func explainForeign(start []byte) string {
	const not = "not a pcap or pcapng file: "
	if len(start) == 0 {
		return not + "it is empty"
	}
	for _, f := range foreignFormats {
		if bytes.HasPrefix(start, []byte(f.start)) {
			return not + "it is " + f.is
		}
	}
	return not + fmt.Sprintf("it starts with %q", start)
}
