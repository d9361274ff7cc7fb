package core

import (
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// TestRestingSendIsSmall checks the size of a record, because a program may have millions of sends that wait
// for receives.
func TestRestingSendIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(restingSend{}); n > 56 {
		t.Errorf("a send that waits takes %d bytes", n)
	}
	if n := unsafe.Sizeof(unexpected{}); n > 64 {
		t.Errorf("a message that waits takes %d bytes", n)
	}
}

// TestRestingNumbers checks that a number refers to the same send in all states in which the engine keeps the send.
func TestRestingNumbers(t *testing.T) {
	q := &RestingSends{}
	for _, tt := range []struct {
		name                   string
		state                  restState
		discarded              bool
		known, pending, remain bool // remain: Forget leaves it to the engine until its end
	}{
		{name: "free", state: restFree},
		{name: "waits", state: restWaits, known: true, pending: true, remain: true},
		{name: "moves", state: restActive, known: true, pending: true, remain: true},
		{name: "taken", state: restTaken, known: true},
		{name: "done", state: restDone, known: true},
		{name: "waits, freed by the library", state: restWaits, discarded: true},
		{name: "done, freed by the library", state: restDone, discarded: true},
	} {
		ref := q.add()
		s := q.record(ref)
		s.state, s.discarded = tt.state, tt.discarded
		n := RestingID(s.generation)<<32 | RestingID(ref)
		for _, wrong := range []RestingID{0, n + 1<<32, n - 1<<32, RestingID(q.allocated + 1)} {
			if q.ref(wrong) != 0 || q.Pending(wrong) || q.Forget(wrong) {
				t.Errorf("%s: %#x is not %#x", tt.name, wrong, n)
			}
		}
		if (q.ref(n) == ref) != tt.known || q.Pending(n) != tt.pending {
			t.Errorf("%s: known %v, pending %v", tt.name, q.ref(n) == ref, q.Pending(n))
		}
		if q.Forget(n) != tt.known || q.Pending(n) || q.Forget(n) {
			t.Errorf("%s: it is forgotten", tt.name)
		}
		if tt.known && (q.record(ref).state == tt.state && q.record(ref).discarded) != tt.remain {
			t.Errorf("%s: %+v", tt.name, q.record(ref))
		}
		if tt.known && !tt.remain {
			if again := q.add(); again != ref || q.record(again).generation != s.generation ||
				RestingID(q.record(again).generation)<<32|RestingID(again) == n {
				t.Errorf("%s: record %d, not %d, with %d uses", tt.name, again, ref, q.record(again).generation)
			}
			q.record(ref).state = restWaits
		}
	}
}

// TestRestingPages checks that records do not move when more are allocated, and that free records are used first.
func TestRestingPages(t *testing.T) {
	q := &RestingSends{}
	var at []*restingSend
	for range 2*restPage + 1 {
		at = append(at, q.record(q.add()))
	}
	if len(q.pages) != 3 || q.allocated != 2*restPage+1 {
		t.Errorf("%d pages for %d records", len(q.pages), q.allocated)
	}
	for i, s := range at {
		if s != q.record(uint32(i+1)) || slices.Index(at, s) != i {
			t.Fatalf("record %d", i)
		}
	}
	for _, ref := range []uint32{7, 1, restPage, restPage + 1} {
		q.remove(ref)
	}
	for _, want := range []uint32{restPage + 1, restPage, 1, 7, 2*restPage + 2} {
		if got := q.add(); got != want {
			t.Errorf("record %d, not %d", got, want)
		}
	}
}

// TestRestingSendsOfAPeer checks that waiting sends are found by peer, that the oldest is reported, and that they
// end with the link, or when the peer agrees to cancel them.
func TestRestingSendsOfAPeer(t *testing.T) {
	w := newCores(t, 2, 3, faults{}, extendedPeer) // with seed 2, nothing rests by itself
	e := w.cores[0]
	e.matching.restThreshold = 1
	w.until(time.Second)
	rests := map[int][]RestingID{}
	send := func(peer int) {
		r := w.start(t, 0, Operation{Kind: OpSendSync, Peer: peer, Tag: 5, Buf: make([]byte, 2000)})
		w.until(w.now + time.Second)
		w.event(0, func(e *Core) { rests[peer] = append(rests[peer], e.RestingSends.Keep(r, nil)) })
	}
	for _, peer := range []int{1, 2, 1, 2, 1} {
		send(peer)
	}
	for peer, n := range map[int]int{1: 3, 2: 2} {
		l := e.peers.at(peer).extended
		refs := slices.Collect(l.eachRest)
		if len(refs) != n || l.resting != n {
			t.Fatalf("%v of %d sends to rank %d rest, %d", refs, n, peer, l.resting)
		}
		for i, ref := range refs {
			if int(uint32(rests[peer][i])) != int(ref) {
				t.Errorf("rank %d: record %d is no send to it", peer, ref)
			}
		}
		for range l.eachRest {
			break // one is enough
		}
		wait, ok := l.restWait()
		if oldest := e.RestingSends.record(refs[0]).posted; !ok || wait.Since != oldest || wait.req.posted != oldest ||
			int(wait.Remote) != peer {
			t.Errorf("rank %d: %+v, %v", peer, wait.Wait, ok)
		}
		e.RestingSends.record(refs[n-1]).posted = 1 // records are not in order of age
		if wait, _ := l.restWait(); wait.Since != 1 {
			t.Errorf("rank %d: %+v", peer, wait.Wait)
		}
	}
	cause := errors.New("the link is gone")
	w.event(0, func(e *Core) { e.peers.at(1).extended.endRests(cause) })
	for _, n := range rests[1] {
		if e.RestingSends.Pending(n) || e.RestingSends.errs[uint32(n)] != cause {
			t.Errorf("a send to rank 1: pending %v, %v", e.RestingSends.Pending(n), e.RestingSends.errs[uint32(n)])
		}
	}
	if _, ok := e.peers.at(1).extended.restWait(); ok || e.peers.at(1).extended.resting != 0 {
		t.Error("sends to rank 1 still rest")
	}
	w.event(0, func(e *Core) { e.peers.at(2).extended.cancelRests(ErrClosed) })
	for _, n := range rests[2] {
		if !e.RestingSends.Pending(n) {
			t.Error("a send to rank 2 is done before the peer agrees")
		}
	}
	w.until(w.now + time.Second)
	for _, n := range rests[2] {
		if err := e.RestingSends.errs[uint32(n)]; e.RestingSends.Pending(n) || !errors.Is(err, ErrCancelled) {
			t.Errorf("a send to rank 2: pending %v, %v", e.RestingSends.Pending(n), err)
		}
	}
	if got := w.cores[2].Depths().Unexpected; got != 0 {
		t.Errorf("rank 2 has %d messages that were cancelled", got)
	}
}

// TestNothingToRest checks that a send does not rest if it has already ended, or has another peer.
func TestNothingToRest(t *testing.T) {
	e := newCores(t, 1, 3, faults{}, extendedPeer).cores[0]
	l, ref := e.peers.at(1).extended, e.RestingSends.add()
	l.restSend(ref) // its Request was released
	r := &Request{kind: OpSend, p: e.peers.at(2), peer: 2, sendID: 1}
	e.peers.at(2).extended.outbox.add(r)
	e.RestingSends.activate(ref, r)
	l.restSend(ref)
	if l.resting != 0 || e.RestingSends.record(ref).state != restActive || e.RestingSends.active[ref] != r {
		t.Errorf("%d rest: %+v", l.resting, e.RestingSends.record(ref))
	}
}
