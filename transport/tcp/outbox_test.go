package tcp

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// drain removes and returns the bytes of one write.
func (o *outbox) drain() []byte {
	n := o.takeBlocks()
	b := slices.Concat(o.writing[:n]...)
	o.releaseBlocks(n)
	return b
}

func TestOutboxKeepsOrderAndLimit(t *testing.T) {
	const limit = 500_000
	o := newOutbox(limit)
	var put, got []byte
	number, refused := uint32(0), 0
	for range 60 {
		var packets []mpe.Packet
		for range 5 {
			number++
			packets = append(packets, transporttest.Packet(0, 1, number, int(number*977)%protocol.MaxStreamPayload))
		}
		n := o.enqueue(packets)
		for _, p := range packets[:n] {
			put = append(append(put, p.Header[:]...), p.Payload...)
		}
		if n < len(packets) {
			refused++
			if next := protocol.ExtHeaderLen + len(packets[n].Payload); o.queuedBytes+next <= limit {
				t.Fatalf("%d bytes wait, and %d were refused", o.queuedBytes, next)
			}
			got = append(got, o.drain()...)
		}
		if o.queuedBytes > limit || o.queuedBytes != len(put)-len(got) {
			t.Fatalf("%d bytes wait, counted %d", len(put)-len(got), o.queuedBytes)
		}
	}
	for len(got) < len(put) {
		b := o.drain()
		if len(b) == 0 || len(b) > writeLen {
			t.Fatalf("%d bytes for one write", len(b))
		}
		got = append(got, b...)
	}
	if !bytes.Equal(got, put) || refused == 0 {
		t.Errorf("the bytes changed on the way; %d lists did not fit", refused)
	}
	if n := o.takeBlocks(); n != 0 || o.queuedBytes != 0 || len(o.spare) > spareBlocks {
		t.Errorf("%d blocks, %d bytes and %d spare blocks are left", n, o.queuedBytes, len(o.spare))
	}
}

func TestOutboxAllocatesNothing(t *testing.T) {
	o := newOutbox(DefaultSendQueue)
	packets := []mpe.Packet{transporttest.Packet(0, 1, 1, 0), transporttest.Packet(0, 1, 2, 20000)}
	step := func() {
		for range 8 {
			if n := o.enqueue(packets); n != len(packets) {
				t.Fatalf("%d packets fit", n)
			}
		}
		for n := o.takeBlocks(); n > 0; n = o.takeBlocks() {
			o.releaseBlocks(n)
		}
	}
	step()
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
