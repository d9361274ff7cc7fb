package tcp

import (
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// blockLen is the length in bytes of the blocks that an outbox is made of:
	// what waits is copied once, and never moved.
	blockLen = 64 << 10
	// writeBlocks is how many blocks one write takes at most, so that, as with
	// writeLen, its deadline asks for progress and not for a speed.
	writeBlocks = writeLen / blockLen
	// spareBlocks is how many empty blocks an outbox keeps for the next burst.
	spareBlocks = 128
)

// blocks is bytes that wait.
type blocks struct {
	// list are the bytes, in order; only the last block has room.
	list [][]byte
	// waiting is how many bytes wait or are being written, and limit how many
	// may.
	waiting, limit int
	spare          [][]byte
}

// queue has the first packets wait, as many as there is room for, and returns how
// many.
func (o *blocks) queue(packets []mpe.Packet) int {
	for i := range packets {
		p := &packets[i]
		length := protocol.ExtHeaderLen + len(p.Payload)
		if length > o.limit-o.waiting {
			return i
		}
		o.waiting += length
		o.append(p.Header[:])
		o.append(p.Payload)
	}
	return len(packets)
}

// append puts b behind what waits. It does not count it.
func (o *blocks) append(b []byte) {
	for len(b) > 0 {
		last := len(o.list) - 1
		if last < 0 || len(o.list[last]) == blockLen {
			o.list = append(o.list, o.block())
			last++
		}
		block := o.list[last]
		n := copy(block[len(block):blockLen], b)
		o.list[last] = block[:len(block)+n]
		b = b[n:]
	}
}

// block returns an empty block.
func (o *blocks) block() []byte {
	n := len(o.spare) - 1
	if n < 0 {
		return make([]byte, 0, blockLen)
	}
	block := o.spare[n]
	o.spare[n] = nil
	o.spare = o.spare[:n]
	return block[:0]
}

// remove takes the first n blocks away.
func (o *blocks) remove(n int) {
	rest := copy(o.list, o.list[n:])
	clear(o.list[rest:])
	o.list = o.list[:rest]
}

// recycle keeps a block, of which nothing waits any more, for the next burst.
func (o *blocks) recycle(block []byte) {
	if len(o.spare) < spareBlocks {
		o.spare = append(o.spare, block)
	}
}
