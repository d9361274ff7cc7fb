package tcp

import (
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// blockLen is the length in bytes of the blocks of an outbox. Pending bytes are copied into a block once, and stay
	// there until they are written.
	blockLen = 64 << 10
	// writeBlocks is the maximum number of blocks in one write. With this limit, the write deadline requires progress,
	// not a minimum speed (see writeLen).
	writeBlocks = writeLen / blockLen
	// spareBlocks is the number of empty blocks that an outbox keeps for the next burst.
	spareBlocks = 128
)

// blocks is a bounded queue of bytes to be written.
type blocks struct {
	// list holds the bytes in order; only its last block may be partly filled.
	list [][]byte
	// queuedBytes is the number of bytes queued or being written. limit is its maximum.
	queuedBytes, limit int
	spare              [][]byte
}

// queue copies packets to the end of the queue until the limit is reached. It returns the number of packets
// queued.
func (o *blocks) queue(packets []mpe.Packet) int {
	for i := range packets {
		p := &packets[i]
		length := protocol.ExtHeaderLen + len(p.Payload)
		if length > o.limit-o.queuedBytes {
			return i
		}
		o.queuedBytes += length
		o.append(p.Header[:])
		o.append(p.Payload)
	}
	return len(packets)
}

// append copies b to the end of the queue, without counting it in queuedBytes.
func (o *blocks) append(b []byte) {
	for len(b) > 0 {
		last := len(o.list) - 1
		if last < 0 || len(o.list[last]) == blockLen {
			o.list = append(o.list, o.newBlock())
			last++
		}
		block := o.list[last]
		n := copy(block[len(block):blockLen], b)
		o.list[last] = block[:len(block)+n]
		b = b[n:]
	}
}

// newBlock returns an empty block.
func (o *blocks) newBlock() []byte {
	n := len(o.spare) - 1
	if n < 0 {
		return make([]byte, 0, blockLen)
	}
	block := o.spare[n]
	o.spare[n] = nil
	o.spare = o.spare[:n]
	return block[:0]
}

// remove drops the first n blocks from the list.
func (o *blocks) remove(n int) {
	rest := copy(o.list, o.list[n:])
	clear(o.list[rest:])
	o.list = o.list[:rest]
}

// recycle keeps a written block for the next burst.
func (o *blocks) recycle(block []byte) {
	if len(o.spare) < spareBlocks {
		o.spare = append(o.spare, block)
	}
}
