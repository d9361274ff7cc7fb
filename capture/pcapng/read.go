package pcapng

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Block types of pcapng used here. The reader ignores all others.
const (
	blockSection        = magicNG
	blockInterface      = 1
	blockPacket         = 2 // obsolete
	blockSimplePacket   = 3
	blockStatistics     = 5
	blockEnhancedPacket = 6
)

const (
	byteOrderMagic = 0x1a2b3c4d
	// blockOverhead is the total length of the block type and the two copies of the block length.
	blockOverhead = 12
	// maxInterfaceBlock is the maximum length of an interface description in bytes.
	maxInterfaceBlock = 128 << 10
	// maxInterfaces is the maximum number of interfaces in a section. It protects against hostile files.
	maxInterfaces = 1 << 16
)

// ngReader reads pcapng. pcapgo's reader is not used because it allocates the length claimed by a block, panics on
// short options and on clocks of 2⁻⁶⁴ seconds, does not report truncated files, and does not return comments
// (pcapgo_test.go).
type ngReader struct {
	w *window
	// order is the byte order of the current section.
	order  binary.ByteOrder
	ifaces []ngInterface
	// begin is the position in the file at which the block read last begins.
	begin int64
	// blockLen is the length of the last block read. blockLeft is the number of unread bytes of this block, without its
	// trailing length.
	blockLeft int64
	blockLen  uint32
	blockOpen bool
	// last is the time of the last packet. A packet without a time gets this time.
	last     time.Time
	metadata Metadata
	// onNote is the argument of NewReader.
	onNote func(RankNote)
}

// ngInterface describes an interface.
type ngInterface struct {
	link    LinkType
	snaplen uint32
	clock   ngClock
}

// Metadata implements Reader.
func (g *ngReader) Metadata() *Metadata { return &g.metadata }

// Next implements Reader.
func (g *ngReader) Next(rec *Record) error {
	for {
		got, err := g.readBlock(rec)
		switch {
		case got:
			return nil
		case err == nil:
		case errors.Is(err, io.EOF):
			return io.EOF
		default:
			if _, ok := errors.AsType[*Error](err); ok {
				return err
			}
			return &Error{Offset: g.begin, Err: err}
		}
	}
}

// readBlock reads the next block, and reports whether it is a packet.
func (g *ngReader) readBlock(rec *Record) (bool, error) {
	if err := g.closeBlock(); err != nil {
		return false, err
	}
	g.begin = g.w.offset
	b, err := g.w.peek(8)
	if err != nil {
		return false, err
	}
	kind := g.order.Uint32(b)
	if binary.BigEndian.Uint32(b) == blockSection { // a palindrome: the same in both orders
		return false, g.readSection()
	}
	total := g.order.Uint32(b[4:])
	if total < blockOverhead || total%4 != 0 {
		return false, g.corrupt("a block claims %d bytes", total)
	}
	switch kind {
	case blockInterface:
		err = g.readInterface(total)
	case blockEnhancedPacket, blockPacket, blockSimplePacket:
		err = g.readPacket(rec, kind, total)
		return err == nil, err
	case blockStatistics:
		err = g.readStatistics(total)
	default:
		g.startBlock(total, 8)
		g.w.advance(8)
	}
	return false, err
}

// startBlock records the start of a new block: its length is total, and the reader has consumed the first n bytes.
func (g *ngReader) startBlock(total uint32, n int) {
	g.blockOpen, g.blockLen, g.blockLeft = true, total, int64(total)-int64(n)-4
}

// closeBlock skips to the end of the last block. readBlock calls it before it reads the next block, because the packet
// must remain in the window until then.
func (g *ngReader) closeBlock() error {
	if !g.blockOpen {
		return nil
	}
	g.blockOpen = false
	if err := g.w.skip(g.blockLeft); err != nil {
		return err
	}
	b, err := g.w.peek(4)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	if again := g.order.Uint32(b); again != g.blockLen {
		return g.corrupt("a block of %d bytes ends as one of %d", g.blockLen, again)
	}
	g.w.advance(4)
	return nil
}

// readSection reads a section header. Each section may use its own byte order.
func (g *ngReader) readSection() error {
	b, err := g.w.peek(16)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	switch {
	case binary.LittleEndian.Uint32(b[8:]) == byteOrderMagic:
		g.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b[8:]) == byteOrderMagic:
		g.order = binary.BigEndian
	default:
		return g.corrupt("a section has no byte order: % x", b[8:12])
	}
	total := g.order.Uint32(b[4:])
	if total < 28 || total%4 != 0 {
		return g.corrupt("a section header claims %d bytes", total)
	}
	if major := g.order.Uint16(b[12:]); major != 1 {
		return g.corrupt("pcapng of version %d.%d, not 1", major, g.order.Uint16(b[14:]))
	}
	g.ifaces = g.ifaces[:0]
	g.readMetadata(total)
	g.startBlock(total, 16)
	g.w.advance(16)
	return nil
}

// readInterface reads the description of an interface.
func (g *ngReader) readInterface(total uint32) error {
	if total < 20 || total > maxInterfaceBlock {
		return g.corrupt("the description of an interface claims %d bytes", total)
	}
	if len(g.ifaces) == maxInterfaces {
		return g.corrupt("more than %d interfaces", maxInterfaces)
	}
	b, err := g.w.peek(int(total) - 4)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	iface := ngInterface{link: LinkType(g.order.Uint16(b[8:])), snaplen: g.order.Uint32(b[12:]), clock: defaultClock()}
	if err := g.interfaceOptions(&iface, b[16:]); err != nil {
		return err
	}
	g.ifaces = append(g.ifaces, iface)
	g.startBlock(total, len(b))
	g.w.advance(len(b))
	return nil
}

// interfaceOptions reads the clock of an interface.
func (g *ngReader) interfaceOptions(iface *ngInterface, b []byte) error {
	for len(b) >= 4 {
		code, length := g.order.Uint16(b), int(g.order.Uint16(b[2:]))
		b = b[4:]
		if code == optEnd {
			break
		}
		if length > len(b) {
			return g.corrupt("an option of an interface claims %d bytes of %d", length, len(b))
		}
		switch {
		case code == optResolution && length == 1:
			if !iface.clock.setResolution(b[0]) {
				return g.corrupt("the clock of an interface has resolution %#x", b[0])
			}
		case code == optOffset && length == 8:
			iface.clock.offset = int64(g.order.Uint64(b))
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return nil
}

// readPacket reads a packet block of any of the three kinds.
func (g *ngReader) readPacket(rec *Record, kind, total uint32) error {
	fixed := 28
	if kind == blockSimplePacket {
		fixed = 12
	}
	if int64(total) < int64(fixed)+4 {
		return g.corrupt("a packet's block claims %d bytes", total)
	}
	h, err := g.w.peek(fixed)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	var id, length uint32
	switch kind {
	case blockEnhancedPacket:
		id = g.order.Uint32(h[8:])
	case blockPacket:
		id = uint32(g.order.Uint16(h[8:]))
	}
	if int64(id) >= int64(len(g.ifaces)) {
		return g.corrupt("a packet is of interface %d of %d", id, len(g.ifaces))
	}
	iface := &g.ifaces[id]
	if kind == blockSimplePacket {
		length = g.order.Uint32(h[8:])
		rec.WireLen = int(length)
		if iface.snaplen > 0 {
			length = min(length, iface.snaplen)
		}
		length = min(length, total-uint32(fixed)-4)
	} else {
		g.last = iface.clock.toTime(uint64(g.order.Uint32(h[12:]))<<32 | uint64(g.order.Uint32(h[16:])))
		length, rec.WireLen = g.order.Uint32(h[20:]), int(g.order.Uint32(h[24:]))
	}
	if length > MaxPacket {
		return &Error{Offset: g.w.offset, Reason: tooLong(length)}
	}
	if int64(length) > int64(total)-int64(fixed)-4 {
		return g.corrupt("a packet of %d bytes is in a block of %d", length, total)
	}
	n := fixed + int(length)
	if rec.Comments = nil; kind == blockEnhancedPacket {
		rec.Comments = g.readComments(n, total)
	}
	b, err := g.w.peek(n)
	if err != nil {
		return toUnexpectedEOF(err)
	}
	rec.Time, rec.Link, rec.Data = g.last, iface.link, b[fixed:]
	// The packet's bytes remain unread; closeBlock skips them with the rest of the block.
	g.startBlock(total, 0)
	return nil
}

// toUnexpectedEOF converts io.EOF to io.ErrUnexpectedEOF, for reads inside a block.
func toUnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (g *ngReader) corrupt(format string, args ...any) error {
	return &Error{Offset: g.w.offset, Reason: fmt.Sprintf(format, args...)}
}
