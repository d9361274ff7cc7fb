package standin

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// source sends KernelOptions.Count messages of KernelOptions.Words words to KernelOptions.Peer, one every
// KernelOptions.Interval. A message that becomes due while the previous one is in progress is sent as soon as the
// previous one completes. PatternWord determines the words. source retries a failed send until it succeeds, so a
// receiver may get a message twice but never misses one.
type source struct{ base }

// Run implements Kernel.
func (k *source) Run(ctx context.Context, rank Rank) error {
	if err := k.checkPeer(rank); err != nil {
		return err
	}
	buf := make([]byte, k.length*protocol.WordLen)
	datatype := protocol.Datatype(k.opts.Datatype)
	opts := mpe.Options{Datatype: datatype}
	var due <-chan time.Time
	if k.opts.Interval > 0 {
		t := time.NewTicker(k.opts.Interval)
		defer t.Stop()
		due = t.C
	}
	filled, sent := -1, 0
	return k.loop(ctx, k.rankLog(rank), func() (bool, error) {
		if filled != sent {
			if sent > 0 && due != nil {
				select {
				case <-due:
				case <-ctx.Done():
					return false, context.Cause(ctx)
				}
			}
			fillPattern(buf, datatype, uint32(sent))
			filled = sent
		}
		if _, err := rank.Send(ctx, k.opts.Peer, buf, opts); err != nil {
			return false, err
		}
		sent++
		return sent == k.opts.Count, nil
	})
}

// floatRange is the number of consecutive integers from 0 that a float32 represents exactly.
const floatRange = 1 << 24

// PatternWord returns word i of message m of a source, both counted from 0, as its 32 bits on the wire. An INT
// word is m × 2²⁰ + i modulo 2³², so that in hexadecimal the message number precedes the word number. A FLOAT
// word is the same number modulo 2²⁴, which a float represents exactly.
func PatternWord(d protocol.Datatype, m, i uint32) uint32 {
	w := m<<20 + i
	if d == protocol.Float {
		return math.Float32bits(float32(w % floatRange))
	}
	return w
}

// fillPattern fills buf with the words of message m, as defined by PatternWord.
func fillPattern(buf []byte, d protocol.Datatype, m uint32) {
	for i := 0; i < len(buf); i += protocol.WordLen {
		binary.LittleEndian.PutUint32(buf[i:], PatternWord(d, m, uint32(i/protocol.WordLen)))
	}
}
