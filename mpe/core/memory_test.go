package core

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestQueue checks that items leave the queue in order, and that removed items are not retained for long.
func TestQueue(t *testing.T) {
	for _, ahead := range []int{0, 1, 64, 65, 66, 100, 1000} { // items that stay in the queue while others pass through
		var q queue[*int]
		if q.pop() != nil || q.len() != 0 {
			t.Fatal("an empty queue has an item")
		}
		next := 0
		push := func() { q.push(new(next)); next++ }
		for range ahead {
			push()
		}
		for passed := range 5000 {
			push()
			if got := q.pop(); got == nil || *got != passed || q.len() != ahead {
				t.Fatalf("%d ahead: %v is item %d, and there are %d", ahead, got, passed, q.len())
			}
			if max(len(q.items), q.head) > 2*ahead+66 {
				t.Fatalf("%d ahead: there is space for %d", ahead, len(q.items))
			}
			if ahead >= 100 && passed < ahead/2 && q.head == 0 { // quadratic time
				t.Fatalf("%d ahead: all were moved for item %d", ahead, passed)
			}
			if slices.ContainsFunc(q.items[:q.head], func(n *int) bool { return n != nil }) ||
				slices.ContainsFunc(q.items[len(q.items):cap(q.items)][:min(64, cap(q.items)-len(q.items))],
					func(n *int) bool { return n != nil }) {
				t.Fatalf("%d ahead: removed items are retained", ahead)
			}
		}
	}
	var q queue[int]
	for i := range 5 {
		q.push(i)
	}
	q.pop()
	for _, tt := range []struct {
		item    int
		removed bool
		left    []int
	}{
		{0, false, []int{1, 2, 3, 4}}, // it was popped
		{1, true, []int{2, 3, 4}},
		{3, true, []int{2, 4}},
		{4, true, []int{2}},
		{4, false, []int{2}},
		{2, true, nil},
	} {
		removed := q.remove(func(i int) bool { return i == tt.item })
		if removed != tt.removed || !slices.Equal(q.items[q.head:], tt.left) {
			t.Errorf("%d: removed %v; left are %v, not %v", tt.item, removed, q.items[q.head:], tt.left)
		}
	}
}

// TestBuffers checks that buffers have the requested length, and are reused by size class, within the limits.
func TestBuffers(t *testing.T) {
	const least, most = 1 << minClass, 1 << maxClass
	for _, tt := range []struct{ length, capacity int }{
		{0, least}, {1, least}, {least - 1, least}, {least, least}, {least + 1, 2 * least},
		{most/2 + 1, most}, {most, most}, {most + 1, 0}, // not kept for reuse
	} {
		var b buffers
		first := b.get(tt.length)
		if len(first) != tt.length || tt.capacity != 0 && cap(first) != tt.capacity {
			t.Errorf("%d bytes: length %d, capacity %d", tt.length, len(first), cap(first))
		}
		b.put(first)
		if b.freeBytes != tt.capacity {
			t.Errorf("%d bytes: %d are held, not %d", tt.length, b.freeBytes, tt.capacity)
		}
		again := b.get(tt.length)
		if b.freeBytes != 0 || cap(again) != cap(first) || tt.capacity > 0 && &again[:1][0] != &first[:1][0] {
			t.Errorf("%d bytes: the memory is not used again; %d are held", tt.length, b.freeBytes)
		}
	}
	var b buffers
	for _, capacity := range []int{0, least / 2, least + 1, 2 * most} {
		if b.put(make([]byte, 0, capacity)); b.freeBytes != 0 {
			t.Errorf("%d bytes of a buffer with %d are held", b.freeBytes, capacity)
		}
	}
	for range maxFreeBytes/most + 2 {
		b.put(make([]byte, most))
	}
	if b.freeBytes != maxFreeBytes || len(b.free[maxClass]) != maxFreeBytes/most {
		t.Errorf("%d bytes in %d buffers are held, not %d", b.freeBytes, len(b.free[maxClass]), maxFreeBytes)
	}
	for n := len(b.free[maxClass]); n > 0; n-- {
		b.get(most)
	}
	if b.freeBytes != 0 {
		t.Errorf("%d bytes of no buffer are held", b.freeBytes)
	}
}

// TestOwnBuffers checks that memory that a caller leaves to the engine is released once, when the engine no
// longer needs it.
func TestOwnBuffers(t *testing.T) {
	var b buffers
	released := 0
	kept := make([]byte, 64)
	keep := func(buf []byte) ([]byte, func()) {
		return kept[:copy(kept, buf)], func() { released++ }
	}
	for _, tt := range []struct {
		name string
		buf  []byte
		keep KeepFunc
		kept bool
	}{
		{"a copy", []byte("message"), nil, false},
		{"kept", []byte("message"), keep, true},
		{"a byte", []byte("m"), keep, true},
		{"nothing", []byte{}, keep, false},
		{"nothing to copy", nil, nil, false},
	} {
		released = 0
		buf := b.detach(tt.buf, tt.keep)
		if !bytes.Equal(buf, tt.buf) || len(buf) > 0 && (&buf[0] == &tt.buf[0] || (&buf[0] == &kept[0]) != tt.kept) {
			t.Errorf("%s: %q", tt.name, buf)
		}
		b.put(nil)
		b.put(make([]byte, 8))
		if released != 0 {
			t.Errorf("%s: released for other memory", tt.name)
		}
		held := b.freeBytes
		b.put(buf)
		b.put(make([]byte, 8))
		if (released == 1) != tt.kept || tt.kept && b.freeBytes != held || len(b.releases) != 0 {
			t.Errorf("%s: released %d times", tt.name, released)
		}
	}
}

// TestInbounds checks that the records of ended messages are cleared and reused after the event, and that their
// number is bounded.
func TestInbounds(t *testing.T) {
	var pool inboundPool
	first, second := pool.get(), pool.get()
	first.bytes, second.bytes = 1, 2
	pool.retire(first)
	pool.retire(second)
	if first.bytes != 1 || len(pool.spare) != 0 {
		t.Error("a message is gone before the end of the event")
	}
	pool.recycle()
	pool.recycle()
	got := []*inbound{pool.get(), pool.get()}
	if !slices.Contains(got, first) || !slices.Contains(got, second) || first.bytes != 0 || second.bytes != 0 {
		t.Error("messages are not used again")
	}
	if third := pool.get(); third == nil || slices.Contains(got, third) {
		t.Error("a message is used twice")
	}
	for range maxSpare + 9 {
		pool.retire(new(inbound))
	}
	pool.recycle()
	if len(pool.spare) != maxSpare || len(pool.retired) != 0 ||
		slices.ContainsFunc(pool.retired[:maxSpare], func(in *inbound) bool { return in != nil }) {
		t.Errorf("%d messages are spare, and %d retired", len(pool.spare), len(pool.retired))
	}
}

// TestStore checks that placed payload stays, that other payload is copied to its destination, and that
// payload beyond the buffer is dropped.
func TestStore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		room    int
		offset  int64
		payload string
		want    string
		got     int64
	}{
		{"at the beginning", 6, 0, "ab", "ab....", 2},
		{"in the middle", 6, 2, "ab", "..ab..", 4},
		{"at the end", 6, 4, "ab", "....ab", 6},
		{"over the end", 6, 5, "ab", ".....a", 7},
		{"behind the end", 6, 6, "ab", "......", 8},
		{"far behind the end", 6, 100, "ab", "......", 102},
		{"nothing", 6, 3, "", "......", 3},
		{"nowhere", 0, 0, "ab", "", 2},
	} {
		in := &inbound{buf: bytes.Repeat([]byte("."), tt.room)}
		in.store(tt.offset, []byte(tt.payload))
		if string(in.buf) != tt.want || in.highWater != tt.got || in.storedBytes != int64(len(tt.payload)) {
			t.Errorf("%s: %q, %d, %d", tt.name, in.buf, in.highWater, in.storedBytes)
		}
	}
	b := []byte("abcd")
	for _, tt := range []struct {
		a, b []byte
		same bool
	}{
		{b, b, true}, {b, b[:1], true}, {b, b[1:], false}, {b, bytes.Clone(b), false}, {b, nil, false}, {nil, b,
			false}, {nil, nil, false}, {b[:0], b, false},
	} {
		if same(tt.a, tt.b) != tt.same {
			t.Errorf("%q at %p and %q at %p: not %v", tt.a, tt.a, tt.b, tt.b, tt.same)
		}
	}
}

// TestSetDestination checks that a receive gets the bytes received so far, and that the remaining bytes are counted as
// bytes copied only once.
func TestSetDestination(t *testing.T) {
	for _, tt := range []struct {
		name                string
		in                  inbound
		room                int
		local, counts       bool
		want                string
		remaining, buffered int
	}{
		{name: "not arrived", in: inbound{bytes: 6}, room: 6, want: "......"},
		{name: "in the engine's memory", in: inbound{bytes: 6, ownsBuf: true, highWater: 6, storedBytes: 6, isComplete: true},
			room: 6, want: "abcdef", buffered: 64},
		{name: "arriving", in: inbound{bytes: 6, ownsBuf: true, highWater: 4, storedBytes: 4}, room: 6, counts: true,
			want: "abcd..", remaining: 2, buffered: 64},
		{name: "with a gap", in: inbound{bytes: 6, ownsBuf: true, highWater: 6, storedBytes: 4}, room: 6, counts: true,
			want: "abcdef", remaining: 2, buffered: 64},
		{name: "all there", in: inbound{bytes: 6, ownsBuf: true, highWater: 6, storedBytes: 6}, room: 6, counts: true,
			want: "abcdef", buffered: 64},
		{name: "more than all", in: inbound{bytes: 6, ownsBuf: true, highWater: 6, storedBytes: 8}, room: 6, counts: true,
			want: "abcdef", buffered: 64},
		{name: "of this rank", in: inbound{bytes: 6, ownsBuf: true, highWater: 4, storedBytes: 4}, room: 6, local: true,
			want: "abcd..", buffered: 64},
		{name: "too long", in: inbound{bytes: 6, ownsBuf: true, highWater: 6, storedBytes: 6, isComplete: true}, room: 3,
			want:     "abc",
			buffered: 64},
	} {
		w := newCores(t, 1, 2, faults{}, extendedPeer)
		e := w.cores[0]
		in := tt.in
		if in.ownsBuf {
			in.buf = append(e.buffers.get(0), "abcdef"...)
		}
		if !tt.local {
			in.p = e.peers.at(1)
		}
		r := &Request{buf: bytes.Repeat([]byte("."), tt.room)}
		e.matching.setDestination(&in, r)
		p := e.peers.at(1)
		if string(r.buf) != tt.want || in.ownsBuf || in.recv != r || r.inbound != &in || &in.buf[0] != &r.buf[0] ||
			e.buffers.freeBytes != tt.buffered {
			t.Errorf("%s: %q, not %q; %d bytes are held", tt.name, r.buf, tt.want, e.buffers.freeBytes)
		}
		if (p.takenOver == 1) != tt.counts || p.takenOverRemaining != uint64(tt.remaining) {
			t.Errorf("%s: counted %d times, with %d bytes, not %d", tt.name, p.takenOver, p.takenOverRemaining,
				tt.remaining)
		}
	}
}

// TestDiscardBuffer checks that the discard buffer has the requested length, and is reused.
func TestDiscardBuffer(t *testing.T) {
	var b discardBuffer
	first := b.grow(100)
	for _, n := range []int{1, 99, 100} {
		if got := b.grow(n); len(got) != n || &got[0] != &first[0] {
			t.Errorf("%d bytes: %d, in other memory %v", n, len(got), &got[0] != &first[0])
		}
	}
	if got := b.grow(101); len(got) != 101 {
		t.Errorf("%d bytes, not 101", len(got))
	}
}

// TestOutbox checks that an ID belongs to one message until that message is removed, and may then belong to
// another.
func TestOutbox(t *testing.T) {
	var b outbox
	requests := []*Request{{buf: []byte("a")}, {buf: []byte("bc"), tag: 7}, {buf: nil}}
	for i, r := range requests {
		if id := b.add(r); int(id) != i+1 {
			t.Errorf("ID %d, not %d", id, i+1)
		}
	}
	for i, r := range requests {
		if o := b.find(extended.ID(i + 1)); o.request != r || o.length != int64(len(r.buf)) || o.tag != r.tag || !o.used {
			t.Errorf("ID %d: %+v", i+1, o)
		}
	}
	if b.remove(2); b.slots[1].used || b.slots[1].buf != nil {
		t.Errorf("the removed message is retained: %+v", b.slots[1])
	}
	if id := b.add(requests[0]); id != 2 || b.find(2).request != requests[0] {
		t.Errorf("ID %d, not 2 again", id)
	}
	if id := b.add(requests[0]); id != 4 {
		t.Errorf("ID %d, not 4", id)
	}
	kept := &outbound{buf: []byte("kept")}
	b.addKept(5, kept)
	if b.find(5) != kept || b.find(4).request != requests[0] || !b.find(6).ownsBuf {
		t.Errorf("%+v, %+v, %+v", b.find(5), b.find(4), b.find(6))
	}
	if b.remove(5); b.find(5) == kept || len(b.free) != 0 || len(b.unslotted) != 0 {
		t.Errorf("the removed message is retained: %+v", b.find(5))
	}
	abort, ordering := b.addInternal([]byte("abort"), nil), b.addInternal(nil, new(collective.Ordering))
	empty := b.addInternal(nil, nil)
	if !b.find(abort).isAbort || b.find(ordering).isAbort || b.find(empty).isAbort || b.find(abort).request != nil ||
		b.find(ordering).ordering == nil {
		t.Errorf("%+v, %+v, %+v", b.find(abort), b.find(ordering), b.find(empty))
	}
}

// TestOutboundSteps checks that the phases of a message are the times of its first SEND_REQUEST, its first
// DATA, and its last DATA.
func TestOutboundSteps(t *testing.T) {
	o := outbound{length: 30}
	for i, tt := range []struct {
		h      protocol.ExtHeader
		length int64
		want   handshake.Phases
		out    bool
	}{
		{protocol.ExtHeader{Type: protocol.SendRequest}, 0, handshake.Phases{Request: 1}, false},
		{protocol.ExtHeader{Type: protocol.SendRequest}, 0, handshake.Phases{Request: 1}, false},
		{protocol.ExtHeader{Type: protocol.Ack}, 0, handshake.Phases{Request: 1}, false},
		{protocol.ExtHeader{Type: protocol.Data}, 10, handshake.Phases{Request: 1, Clear: 4}, false},
		{protocol.ExtHeader{Type: protocol.Data, Offset: 10}, 10, handshake.Phases{Request: 1, Clear: 4}, false},
		{protocol.ExtHeader{Type: protocol.Data, Offset: 20}, 10, handshake.Phases{Request: 1, Clear: 4, Data: 6},
			true},
		{protocol.ExtHeader{Type: protocol.Data, Offset: 10}, 10, handshake.Phases{Request: 1, Clear: 4, Data: 6},
			true},
	} {
		o.noteSent(&tt.h, tt.length, handshake.Instant(i+1))
		if o.phases != tt.want || o.allSent != tt.out {
			t.Errorf("packet %d: %+v, %v, not %+v, %v", i+1, o.phases, o.allSent, tt.want, tt.out)
		}
	}
}

// TestKeptPayload checks that unacknowledged payload stays readable, whatever is pushed after it, and that the
// memory is proportional to the payload that is needed.
func TestKeptPayload(t *testing.T) {
	for _, window := range []int{0, 1, 100, 3000, minShortBuf, 50_000} {
		var k shortPayload
		var all []byte
		most := 0
		for i := range 3000 {
			payload := bytes.Repeat([]byte{byte(i)}, i%97)
			n := min(window, len(all))
			k.push(payload, n)
			all = append(all, payload...)
			most = max(most, n+len(payload))
			if needed := all[len(all)-len(payload)-n:]; !bytes.Equal(k.buf[k.end-len(needed):k.end], needed) {
				t.Fatalf("window of %d bytes: message %d does not follow the payload that is needed", window, i)
			}
			if len(k.buf) > max(minShortBuf, 4*most) {
				t.Fatalf("window of %d bytes: %d bytes of memory for %d", window, len(k.buf), most)
			}
		}
	}
}

// TestExposed checks that, between ranks that share memory, the peer may read the payload of a message that
// is not eager, and the whole of an announced message, unless it is forwarded while it arrives, or may rest.
func TestExposed(t *testing.T) {
	const length = 4000
	for _, tt := range []struct {
		name                string
		network             faults
		h                   protocol.ExtHeader
		req                 *Request
		flowing             bool
		exposed, advertised bool
	}{
		{"an announcement", faults{memory: true}, protocol.ExtHeader{Type: protocol.SendRequest}, new(Request),
			false, true, true},
		{"one whose caller has its buffer back", faults{memory: true}, protocol.ExtHeader{Type: protocol.SendRequest},
			nil, false, true, true},
		{"one that is sent on", faults{memory: true}, protocol.ExtHeader{Type: protocol.SendRequest},
			new(Request), true, true, false},
		{"one that may rest", faults{memory: true}, protocol.ExtHeader{Type: protocol.SendRequest},
			&Request{MayRest: true}, false, true, false},
		{"a part", faults{memory: true}, protocol.ExtHeader{Type: protocol.Data, Length: length}, new(Request),
			false, true, false},
		{"an eager part", faults{memory: true}, protocol.ExtHeader{Type: protocol.Data, Length: length,
			Flags: protocol.FlagEager},
			new(Request), false, false, false},
		{"an announcement over a network", faults{}, protocol.ExtHeader{Type: protocol.SendRequest}, new(Request),
			false, false, false},
		{"a part over a network", faults{}, protocol.ExtHeader{Type: protocol.Data, Length: length},
			new(Request), false, false, false},
	} {
		l := newCores(t, 1, 2, tt.network, extendedPeer).cores[0].peers.at(1).extended
		r := &Request{buf: make([]byte, length)}
		id := l.outbox.add(r)
		o := l.outbox.find(id)
		o.request, o.forwarded = tt.req, tt.flowing
		l.transmit(&extended.Action{ID: id, Header: tt.h, Length: 1000})
		b := &l.p.e.connActions.batch
		if b.n != 1 {
			t.Fatalf("%s: %d packets", tt.name, b.n)
		}
		pk := &b.packets[0]
		if (pk.Exposed == uint64(id)) != tt.exposed || o.advertised != tt.exposed ||
			(len(pk.Advertised) == length) != tt.advertised ||
			len(pk.Payload) != 1000 {
			t.Errorf("%s: exposed as %d, %d bytes advertised", tt.name, pk.Exposed, len(pk.Advertised))
		}
	}
}

// TestPacketBatches checks that packets are handed to the network when there are packetBatchLen of them, or
// enough bytes.
func TestPacketBatches(t *testing.T) {
	for _, length := range []int{0, 100, 4096, 4097, 60_000} {
		w := newCores(t, 1, 2, faults{},
			func(_, _ int) Peer { return Peer{Extended: &extended.Config{MaxPayload: 60_000}} })
		l := w.cores[0].peers.at(1).extended
		id := l.outbox.add(&Request{buf: make([]byte, length)})
		b := &l.p.e.connActions.batch
		each := 0 // packets handed over at a time
		for n := range 3 * packetBatchLen {
			before := b.n
			l.transmit(&extended.Action{ID: id, Header: protocol.ExtHeader{Type: protocol.Data},
				Length: int64(length)})
			if b.bytes >= l.batchBytes {
				t.Fatalf("packet %d of %d bytes: %d bytes wait for more", n, length, b.bytes)
			}
			if b.n > before {
				continue
			}
			at := before // before the packet, because the batch was full
			if b.n == 0 {
				at++
			}
			want := packetBatchLen
			if length > 0 {
				want = min(want, (l.batchBytes+length-1)/length)
			}
			if each = at; each != want {
				t.Fatalf("packet %d of %d bytes: %d were handed over, not %d", n, length, each, want)
			}
		}
		if each == 0 {
			t.Errorf("%d bytes: none was handed over", length)
		}
	}
}
