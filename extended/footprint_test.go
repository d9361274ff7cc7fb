package extended

import (
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// A rank has a Conn for every other rank, and most are idle. A Conn is a single piece of memory of less than 2 KiB, and
// has no more before it is used.
func TestIdleConnIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Conn{}); n > 2048 { // a size class of the allocator
		t.Errorf("a Conn has %d bytes", n)
	}
	cfg := Config{Local: 1, Remote: 2, Seed: 3}
	if n := testing.AllocsPerRun(100, func() { idle = New(cfg) }); n != 1 {
		t.Errorf("New makes %v allocations", n)
	}
}

var idle *Conn

// The memory for held packets grows with their distance from the missing one, and packets are kept when it grows.
func TestHeldGrowsWithDistance(t *testing.T) {
	const next = 1<<32 - 100 // numbers wrap around
	var q heldPackets
	payload := func(number uint32) []byte { return []byte{byte(number), byte(number >> 8)} }
	for _, x := range []struct{ distance, slots int }{
		{1, 16}, {15, 16}, {16, 32}, {3, 32}, {40, 64}, {200, 256}, {shortWindow - 1, shortWindow}, {201, shortWindow},
		{maxWindow - 1, maxWindow},
	} {
		number := next + uint32(x.distance)
		q.add(next, &protocol.ExtHeader{Number: number}, payload(number))
		if len(q.slots) != x.slots {
			t.Errorf("%d slots for a distance of %d, want %d", len(q.slots), x.distance, x.slots)
		}
	}
	for _, distance := range []int{1, 3, 15, 16, 40, 200, 201, shortWindow - 1, maxWindow - 1} {
		number := next + uint32(distance)
		p := q.find(number)
		if p == nil || p.header.Number != number || string(p.payload) != string(payload(number)) {
			t.Errorf("packet %d is not there: %+v", number, p)
			continue
		}
		q.remove(p)
	}
	if len(q.packets) != 0 || q.bytes != 0 || len(q.free) != 9 {
		t.Errorf("%d packets and %d bytes are left, and %d buffers", len(q.packets), q.bytes, len(q.free))
	}
}

// Only a few buffers of large packets are kept.
func TestHeldKeepsFewLargeBuffers(t *testing.T) {
	var q heldPackets
	large := make([]byte, 60_000)
	for n := range uint32(10) {
		q.add(0, &protocol.ExtHeader{Number: n}, large)
	}
	q.reset()
	if len(q.packets) != 0 || len(q.free) != 2 {
		t.Errorf("%d packets are left, and %d buffers are kept", len(q.packets), len(q.free))
	}
	q.add(0, &protocol.ExtHeader{Number: 1}, large)
	if len(q.free) != 1 || int(q.freeBytes) != cap(q.free[0]) {
		t.Errorf("%d buffers and %d bytes are kept while one is used", len(q.free), q.freeBytes)
	}
}
