package core

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// sharing starts two ranks that share memory, and are connected.
func sharing(t *testing.T) *world {
	w := newCores(t, 1, 2, faults{stream: true, memory: true}, extendedPeer)
	for from := range 2 {
		w.run(t, []*Request{
			w.start(t, from, Operation{Kind: OpSend, Peer: 1 - from, Buf: make([]byte, 100)}),
			w.start(t, 1-from, Operation{Kind: OpRecv, Peer: from, Buf: make([]byte, 100)}),
		})
	}
	w.until(w.now + time.Second)
	return w
}

// shortPacket sends a message from rank 0 with a short header, and returns its packet.
func (w *world) shortPacket(t *testing.T, tag int, payload []byte) RxPacket {
	t.Helper()
	w.wire = nil
	for sent := false; !sent; { // the network may be full
		sent, _ = w.cores[0].SendNow(1, tag, 0, payload, protocol.Int, false)
	}
	for i := range w.wire {
		if d := &w.wire[i]; d.kind == RxShort && d.from == 0 {
			return RxPacket{Kind: RxShort, Peer: 0, Bytes: d.bytes}
		}
	}
	t.Fatal("no packet was sent")
	return RxPacket{}
}

// TestReceiveShorts checks that a packet is delivered without an event if, and only if, it needs no special
// treatment.
func TestReceiveShorts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		payload string
		posted  int // bytes of the posted receive, or -1
		change  func(e *Core, a *RxPacket)
		network int
		taken   bool
		err     error
	}{
		{name: "a message", payload: "message", posted: 7, taken: true},
		{name: "an empty message", posted: 0, taken: true},
		{name: "a short one", payload: "m", posted: 7, taken: true},
		{name: "a long one", payload: "messages", posted: 7, taken: true, err: ErrTruncated},
		{name: "no receive", payload: "message", posted: -1},
		{name: "cut off", posted: 7, change: func(_ *Core,
			a *RxPacket) {
			a.Bytes = a.Bytes[:protocol.ShortHeaderLen-1]
		}},
		{name: "of another kind", posted: 7, change: func(_ *Core, a *RxPacket) { a.Kind = RxDatagram }},
		{name: "of another network", payload: "message", posted: 7, network: 1},
		{name: "of no rank", posted: 7, change: func(_ *Core, a *RxPacket) { a.Peer = 2 }},
		{name: "of this rank", posted: 7, change: func(_ *Core, a *RxPacket) { a.Peer = 1 }},
		{name: "observed", posted: 7, change: func(e *Core, _ *RxPacket) { e.observesMemory = true }},
		{name: "closed", posted: 7, change: func(e *Core, _ *RxPacket) { e.state = closed }},
		{name: "without shared memory", posted: 7, change: func(e *Core,
			_ *RxPacket) {
			e.peers.at(0).extended.memory = nil
		}},
		{name: "of another session", posted: 7, change: func(_ *Core, a *RxPacket) { a.Bytes[0]++ }},
	} {
		w := sharing(t)
		e := w.cores[1]
		var r *Request
		if tt.posted >= 0 {
			r = w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Tag: 3, Buf: make([]byte, tt.posted)})
		}
		a := w.shortPacket(t, 3, []byte(tt.payload))
		if tt.change != nil {
			tt.change(e, &a)
		}
		other := RxPacket{Kind: RxConnected, Peer: 0} // always returned
		rest := e.ReceiveShorts(tt.network, []RxPacket{a, other})
		if taken := len(rest) == 1; taken != tt.taken {
			t.Errorf("%s: taken %v", tt.name, taken)
		}
		if r == nil {
			continue
		}
		buf := bytes.TrimRight([]byte(tt.payload), "\x00")
		if r.Done != tt.taken || !errors.Is(r.Err, tt.err) || tt.taken && (r.Status.Bytes != int64(len(buf)) ||
			r.Status.Tag != 3 || r.Status.Peer != 0) {
			t.Errorf("%s: over %v, %v, %+v", tt.name, r.Done, r.Err, r.Status)
		}
	}
	w := sharing(t)
	r := w.start(t, 1, Operation{Kind: OpRecv, Peer: 0, Tag: 3, Buf: make([]byte, 8)})
	if rest := w.cores[1].ReceiveShorts(0, []RxPacket{w.shortPacket(t, 3, make([]byte, 8))}); rest != nil || !r.Done {
		t.Errorf("a batch of one: %v, %v", rest, r.Done)
	}
}

// TestMaySendNow checks that a message is sent without a request only to a rank that shares memory, and only
// if it is not observed.
func TestMaySendNow(t *testing.T) {
	sharing := sharing(t).cores[0]
	for _, tt := range []struct {
		name              string
		peer, tag, length int
		change            func(e *Core)
		want              bool
	}{
		{"a message", 1, 0, 8, nil, true},
		{"the highest tag", 1, math.MaxInt32, 8, nil, true},
		{"a tag too high", 1, math.MaxInt32 + 1, 8, nil, false},
		{"a negative tag", 1, -1, 8, nil, false},
		{"to no rank", 2, 0, 8, nil, false},
		{"to a negative rank", -1, 0, 8, nil, false},
		{"to itself", 0, 0, 8, nil, false},
		{"the longest", 1, 0, 100, func(e *Core) { e.peers.at(1).uncheckedLen = 100 }, true},
		{"too long", 1, 0, 101, func(e *Core) { e.peers.at(1).uncheckedLen = 100 }, false},
		{"observed", 1, 0, 8, func(e *Core) { e.observed = true }, false},
		{"of an unobserved peer", 1, 0, 8, func(e *Core) { e.observed, e.peers.at(1).cfg.Unobserved = true, true },
			true},
		{"without shared memory", 1, 0, 8, func(e *Core) { e.peers.at(1).extended.memory = nil }, false},
	} {
		e, p, l := *sharing, *sharing.peers.at(1), *sharing.peers.at(1).extended
		l.p, p.extended, p.link, p.e, e.peers.list = &p, &l, &l, &e, []*peer{nil, &p}
		if tt.change != nil {
			tt.change(&e)
		}
		if got := e.MaySendNow(tt.peer, tt.tag, tt.length); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// copying is a Memory that provides the messages of other ranks, or none.
type copying struct {
	Memory
	there   bool
	fetched []byte
	got     []byte
}

func (c *copying) Fetch(_ *RxPacket, dst []byte) bool { c.fetched = dst; return c.there }
func (c *copying) Get(_ int, advertised uint64, b []byte) bool {
	c.got = b
	return c.there && advertised == 9
}

// TestGetAdvertised checks that an advertised message is copied to its receive, if there is a receive whose buffer is
// not empty.
func TestGetAdvertised(t *testing.T) {
	for _, tt := range []struct {
		name       string
		advertised uint64
		room       int64
		detached   bool
		without    bool
		gone       bool
		copied     bool
	}{
		{name: "advertised", advertised: 9, room: 6, copied: true},
		{name: "with space for a part", advertised: 9, room: 4, copied: true},
		{name: "with space for a byte", advertised: 9, room: 1, copied: true},
		{name: "without space", advertised: 9},
		{name: "not advertised", room: 6},
		{name: "detached", advertised: 9, room: 6, detached: true},
		{name: "over a network", advertised: 9, room: 6, without: true},
		{name: "not available any more", advertised: 9, room: 6, gone: true},
	} {
		l := newCores(t, 1, 2, faults{}, extendedPeer).cores[0].peers.at(1).extended
		memory := &copying{there: !tt.gone}
		if !tt.without {
			l.memory = memory
		}
		in := &inbound{bytes: 6, buf: make([]byte, 6), clearedBytes: tt.room, advertised: tt.advertised}
		if !tt.detached {
			in.recv = new(Request)
		}
		if l.getAdvertised(in) != tt.copied || tt.copied != (in.highWater == tt.room && in.storedBytes == tt.room &&
			in.highWater > 0) {
			t.Errorf("%s: %d of %d bytes", tt.name, in.highWater, in.storedBytes)
		}
		if tt.copied && (int64(len(memory.got)) != tt.room || &memory.got[0] != &in.buf[0]) {
			t.Errorf("%s: copied %d bytes to other memory", tt.name, len(memory.got))
		}
	}
}

// TestFetch checks that the payload of a packet is copied to the expected destination of its message, and
// otherwise discarded.
func TestFetch(t *testing.T) {
	w := newCores(t, 1, 2, faults{stream: true}, extendedPeer)
	e := w.cores[0]
	l := e.peers.at(1).extended
	var header []byte
	w.trace = func(_ string, d datagram) { // the first part of the message
		if h, _, defect := protocol.ParseExtendedHeader(d.bytes[:min(len(d.bytes),
			protocol.ExtHeaderLen)]); header == nil &&
			defect.OK() && h.Type == protocol.Data {
			header = d.bytes[:protocol.ExtHeaderLen]
		}
	}
	buf := make([]byte, 50_000)
	r := w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Buf: buf})
	w.start(t, 1, Operation{Kind: OpSendSync, Peer: 0, Buf: make([]byte, 50_000)})
	for header == nil && w.step() {
	}
	h, length, _ := protocol.ParseExtendedHeader(header)
	if header == nil || h.Offset != 0 || r.inbound == nil {
		t.Fatalf("no part of the message: %+v", h)
	}
	n := int(length)
	for _, tt := range []struct {
		name    string
		room    int // size of the receive, if it is shorter
		away    int
		there   bool
		without bool
		fetched bool
		placed  bool
	}{
		{name: "expected", away: n, there: true, fetched: true, placed: true},
		{name: "with just enough space", room: n, away: n, there: true, fetched: true, placed: true},
		{name: "a byte too long", room: n - 1, away: n, there: true, fetched: true},
		{name: "of another length", away: n - 1, there: true, fetched: true},
		{name: "gone", away: n},
		{name: "over a network", away: n, there: true, without: true},
	} {
		memory := &copying{there: tt.there}
		l.memory = memory
		if tt.without {
			l.memory = nil
		}
		r.inbound.buf = buf
		if tt.room > 0 {
			r.inbound.buf = buf[:tt.room]
		}
		got := l.fetch(&RxPacket{Bytes: header, RemoteBytes: tt.away})
		if (got != nil) != tt.fetched || tt.fetched && (len(got) != tt.away || (&got[0] == &buf[0]) != tt.placed) {
			t.Errorf("%s: %d bytes, placed %v", tt.name, len(got), len(got) > 0 && &got[0] == &buf[0])
		}
	}
}

// TestInbox checks that each message is found by its number until it is removed.
func TestInbox(t *testing.T) {
	var b inbox
	var found extended.Message
	messages := map[extended.Message]*inbound{}
	check := func(what string) {
		t.Helper()
		n := 0
		for in := range b.each {
			if messages[in.id] != in {
				t.Errorf("%s: message %v", what, in.id)
			}
			n++
		}
		if n != len(messages) {
			t.Errorf("%s: %d messages, not %d", what, n, len(messages))
		}
		for num := range extended.Message(6) {
			if b.find(num) != messages[num] {
				t.Errorf("%s: message %v is %p, not %p", what, num, b.find(num), messages[num])
			}
		}
		for in := range b.each {
			found = in.id
			break
		}
		if len(messages) > 0 && messages[found] == nil {
			t.Errorf("%s: one of them is %v", what, found)
		}
	}
	add := func(num extended.Message) {
		messages[num] = &inbound{id: num}
		b.add(num, messages[num])
	}
	remove := func(num extended.Message) {
		delete(messages, num)
		b.remove(num)
	}
	check("none")
	add(1)
	check("one")
	add(2)
	add(3)
	check("three")
	remove(5)
	check("another one removed")
	remove(3)
	check("the last one removed")
	add(4)
	check("another one")
	remove(1)
	check("the first one removed")
	remove(4)
	remove(2)
	check("all removed")
	remove(2)
	check("removed again")
}

// TestFormsOfPackets checks that a packet has the same effect in one piece and in two pieces, whether or not the
// transport has already verified its checksum.
func TestFormsOfPackets(t *testing.T) {
	const head = protocol.ExtHeaderLen
	for name, form := range map[string]func(b []byte) RxPacket{
		"in one piece":           func(b []byte) RxPacket { return RxPacket{Bytes: b} },
		"in two":                 func(b []byte) RxPacket { return RxPacket{Bytes: b[:head], Tail: b[head:]} },
		"verified, in one piece": func(b []byte) RxPacket { return RxPacket{Bytes: b, Verified: true} },
		"verified, in two": func(b []byte) RxPacket {
			return RxPacket{Bytes: b[:head], Tail: b[head:],
				Verified: true}
		},
	} {
		for _, length := range []int{0, 1, 2, 500} {
			w := newCores(t, 1, 2, faults{}, extendedPeer)
			w.run(t, []*Request{
				w.start(t, 1, Operation{Kind: OpSend, Peer: 0}), w.start(t, 0, Operation{Kind: OpRecv, Peer: 1}),
			})
			w.until(w.now + time.Second)
			w.wire = nil
			payload, buf := bytes.Repeat([]byte("x"), length), make([]byte, length)
			r := w.start(t, 0, Operation{Kind: OpRecv, Peer: 1, Buf: buf})
			w.start(t, 1, Operation{Kind: OpSend, Peer: 0, Buf: payload})
			if len(w.wire) != 1 {
				t.Fatalf("%d packets", len(w.wire))
			}
			before := w.cores[0].peers.at(1).bytesIn
			a := form(w.wire[0].bytes)
			a.Kind, a.Peer = RxDatagram, 1
			w.event(0, func(e *Core) { e.ReceiveBatch(0, []RxPacket{a}) })
			if !r.Done || r.Err != nil || !bytes.Equal(buf, payload) {
				t.Errorf("%s, %d bytes: over %v, %v, %q", name, length, r.Done, r.Err, buf)
			}
			if n := w.cores[0].peers.at(1).bytesIn - before; n != uint64(head+length) {
				t.Errorf("%s, %d bytes: %d are counted", name, length, n)
			}
		}
	}
}

// TestAdvertised checks that a message keeps the number by which its sender advertises it.
func TestAdvertised(t *testing.T) {
	for _, advertised := range []uint64{0, 1, 2, 1 << 40} {
		w := newCores(t, 1, 2, faults{}, extendedPeer)
		w.run(t, []*Request{
			w.start(t, 1, Operation{Kind: OpSend, Peer: 0}), w.start(t, 0, Operation{Kind: OpRecv, Peer: 1}),
		})
		w.until(w.now + time.Second)
		e := w.cores[0]
		e.matching.restThreshold = 9 // it keeps its record
		w.wire = nil
		w.start(t, 1, Operation{Kind: OpSendSync, Peer: 0, Buf: make([]byte, 50_000)})
		if len(w.wire) != 1 {
			t.Fatalf("%d packets", len(w.wire))
		}
		a := RxPacket{Kind: RxDatagram, Peer: 1, Bytes: w.wire[0].bytes, Advertised: advertised}
		w.event(0, func(e *Core) { e.ReceiveBatch(0, []RxPacket{a}) })
		n := 0
		for in := range e.peers.at(1).extended.inbox.each {
			if n++; in.advertised != advertised || in.bytes != 50_000 {
				t.Errorf("%d bytes are advertised as %d, not %d", in.bytes, in.advertised, advertised)
			}
		}
		if n != 1 {
			t.Errorf("%d messages", n)
		}
	}
}
