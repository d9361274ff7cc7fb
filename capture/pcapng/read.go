package pcapng

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Block types of pcapng used here. All others are ignored.
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
	// blockOverhead is the length of the block type and of the block length, which occurs twice.
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
	// order is the byte order of the section.
	order  binary.ByteOrder
	ifaces []ngInterface
	// begin is the offset of the last block in the file.
	begin int64
	// total is the length of the last block returned. left is the number of bytes of the block not yet read, without
	// its trailing length.
	left  int64
	total uint32
	open  bool
	// last is the time of the last packet, used for packets without a time.
	last  time.Time
	about About
	// onNote is the argument of NewReader.
	onNote func(RankNote)
}

// ngInterface describes an interface.
type ngInterface struct {
	link    LinkType
	snaplen uint32
	clock   ngClock
}

// About implements Reader.
func (g *ngReader) About() *About { return &g.about }

// Next implements Reader.
func (g *ngReader) Next(rec *Record) error {
	for {
		got, err := g.block(rec)
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

// block reads the next block, and reports whether it is a packet.
func (g *ngReader) block(rec *Record) (bool, error) {
	if err := g.closeBlock(); err != nil {
		return false, err
	}
	g.begin = g.w.offset
	b, err := g.w.need(8)
	if err != nil {
		return false, err
	}
	kind := g.order.Uint32(b)
	if binary.BigEndian.Uint32(b) == blockSection { // a palindrome: the same in both orders
		return false, g.section()
	}
	total := g.order.Uint32(b[4:])
	if total < blockOverhead || total%4 != 0 {
		return false, g.corrupt("a block claims %d bytes", total)
	}
	switch kind {
	case blockInterface:
		err = g.interfaceBlock(total)
	case blockEnhancedPacket, blockPacket, blockSimplePacket:
		err = g.packet(rec, kind, total)
		return err == nil, err
	case blockStatistics:
		err = g.statistics(total)
	default:
		g.opened(total, 8)
		g.w.advance(8)
	}
	return false, err
}

// opened records that n bytes of a new block were read.
func (g *ngReader) opened(total uint32, n int) {
	g.open, g.total, g.left = true, total, int64(total)-int64(n)-4
}

// closeBlock skips to the end of the last block. It is called only when the next block is read, because the packet must
// remain in the window until then.
func (g *ngReader) closeBlock() error {
	if !g.open {
		return nil
	}
	g.open = false
	if err := g.w.skip(g.left); err != nil {
		return err
	}
	b, err := g.w.need(4)
	if err != nil {
		return whole(err)
	}
	if again := g.order.Uint32(b); again != g.total {
		return g.corrupt("a block of %d bytes ends as one of %d", g.total, again)
	}
	g.w.advance(4)
	return nil
}

// section starts a section, whose byte order may differ from the previous section's.
func (g *ngReader) section() error {
	b, err := g.w.need(16)
	if err != nil {
		return whole(err)
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
	g.describe(total)
	g.opened(total, 16)
	g.w.advance(16)
	return nil
}

// interfaceBlock reads the description of an interface.
func (g *ngReader) interfaceBlock(total uint32) error {
	if total < 20 || total > maxInterfaceBlock {
		return g.corrupt("the description of an interface claims %d bytes", total)
	}
	if len(g.ifaces) == maxInterfaces {
		return g.corrupt("more than %d interfaces", maxInterfaces)
	}
	b, err := g.w.need(int(total) - 4)
	if err != nil {
		return whole(err)
	}
	iface := ngInterface{link: LinkType(g.order.Uint16(b[8:])), snaplen: g.order.Uint32(b[12:]), clock: defaultClock()}
	if err := g.interfaceOptions(&iface, b[16:]); err != nil {
		return err
	}
	g.ifaces = append(g.ifaces, iface)
	g.opened(total, len(b))
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

// packet reads one of the three kinds of packet blocks.
func (g *ngReader) packet(rec *Record, kind, total uint32) error {
	fixed := 28
	if kind == blockSimplePacket {
		fixed = 12
	}
	if int64(total) < int64(fixed)+4 {
		return g.corrupt("a packet's block claims %d bytes", total)
	}
	h, err := g.w.need(fixed)
	if err != nil {
		return whole(err)
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
		rec.Wire = int(length)
		if iface.snaplen > 0 {
			length = min(length, iface.snaplen)
		}
		length = min(length, total-uint32(fixed)-4)
	} else {
		g.last = iface.clock.time(uint64(g.order.Uint32(h[12:]))<<32 | uint64(g.order.Uint32(h[16:])))
		length, rec.Wire = g.order.Uint32(h[20:]), int(g.order.Uint32(h[24:]))
	}
	if length > MaxPacket {
		return &Error{Offset: g.w.offset, Reason: tooLong(length)}
	}
	if int64(length) > int64(total)-int64(fixed)-4 {
		return g.corrupt("a packet of %d bytes is in a block of %d", length, total)
	}
	n := fixed + int(length)
	if rec.Comments = nil; kind == blockEnhancedPacket {
		rec.Comments = g.comments(n, total)
	}
	b, err := g.w.need(n)
	if err != nil {
		return whole(err)
	}
	rec.Time, rec.Link, rec.Data = g.last, iface.link, b[fixed:]
	// closeBlock skips the packet's bytes with the rest of the block.
	g.opened(total, 0)
	return nil
}

// whole converts io.EOF to io.ErrUnexpectedEOF, for reads inside a block.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (g *ngReader) corrupt(format string, args ...any) error {
	return &Error{Offset: g.w.offset, Reason: fmt.Sprintf(format, args...)}
}
