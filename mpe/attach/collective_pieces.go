package attach

import (
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// pieces are places in memory that are one run of bytes on the socket.
type pieces struct {
	list [][]byte
	// at is the piece that is next, which has been shortened by what has gone.
	at int
	// left is how many bytes there are.
	left int
}

// reset drops all pieces. The program's memory is its own again.
func (p *pieces) reset() {
	clear(p.list)
	*p = pieces{list: p.list[:0]}
}

// add adds a piece.
func (p *pieces) add(b []byte) {
	if len(b) > 0 {
		p.list = append(p.list, b)
		p.left += len(b)
	}
}

// addBlock adds a rank's block of a buffer.
func (p *pieces) addBlock(buf []byte, c *coll.Call, l *coll.Layout, i int) {
	off, size := wire.Block(c, l, i)
	if c.Vector && l.Offsets != nil {
		off = l.Offsets[i]
	}
	if size > 0 {
		p.add(buf[off : off+size])
	}
}

// addBlocks adds all blocks of a buffer. Those that lie one after another are one piece.
func (p *pieces) addBlocks(buf []byte, c *coll.Call, l *coll.Layout) {
	if !c.Vector || l.Offsets == nil {
		p.add(buf[:wire.Extent(c, l)])
		return
	}
	begin, end := 0, 0
	for i, size := range l.Sizes {
		switch off := l.Offsets[i]; {
		case size == 0:
		case off == end:
			end += size
		default:
			p.add(buf[begin:end])
			begin, end = off, off+size
		}
	}
	p.add(buf[begin:end])
}

// next takes the next bytes: a piece, or as much of it as most.
func (p *pieces) next(most int) []byte {
	if p.at == len(p.list) {
		return nil
	}
	b := p.list[p.at]
	if len(b) <= most {
		p.at++
	} else {
		p.list[p.at] = b[most:]
		b = b[:most]
	}
	p.left -= len(b)
	return b
}
