package control

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PingRequest asks for messages to a rank that sends every one of them back, as
// the echo kernel does.
type PingRequest struct {
	// From is the local rank, or AnyRank.
	From int `json:"from"`
	To   int `json:"to"`
	// Words is the size of each message.
	Words int `json:"words"`
	// Count is how many round trips are made, one after the other; at least 1.
	Count    int    `json:"count"`
	Datatype string `json:"datatype"`
	// Timeout is that of each round trip, as time.ParseDuration reads it;
	// "0s" is never.
	Timeout string `json:"timeout"`
	// Seed makes the payload: message i, counted from 0, is Payload of
	// Seed + i. 0 lets the daemon choose.
	Seed uint64 `json:"seed,omitempty"`
}

// Trip is one round trip of a ping.
type Trip struct {
	Seq   int    `json:"seq"`
	From  int    `json:"from"`
	To    int    `json:"to"`
	Words int    `json:"words"`
	Seed  uint64 `json:"seed"`
	// RoundTrip is the time from the post of the send to the last byte of
	// the echo, in microseconds.
	RoundTrip float64 `json:"round_trip_us"`
	// Out is our message's handshake, Back that of its echo.
	Out  Phases `json:"out"`
	Back Phases `json:"back"`
	// Verified: every byte of the echo was compared and is right.
	Verified bool `json:"verified"`
	// Late counts echoes of earlier pings, whose time had run out, that
	// arrived first and were skipped.
	Late int `json:"late,omitempty"`
	// Error and Kind say why the round trip failed. It is the last of its
	// ping then, unless Kind is Mismatch.
	Error string `json:"error,omitempty"`
	Kind  Kind   `json:"kind,omitempty"`
	// Mismatch is where the echo differs first, if it has the right length.
	Mismatch *Difference `json:"mismatch,omitempty"`
}

// Difference is one word that is not as it should be.
type Difference struct {
	// Word is its index in the message, counted from 0.
	Word int    `json:"word"`
	Want uint32 `json:"want"`
	Got  uint32 `json:"got"`
}

func (t *Trip) fail(err error) {
	e := asError(err)
	t.Error, t.Kind = e.Message, e.Kind
}

// maxUnanswered bounds how many pings without an answer are remembered per pair
// of ranks.
const maxUnanswered = 16

// pinger makes the pings of one pair of ranks, one at a time.
type pinger struct {
	busy chan struct{} // holds a token while a ping is under way
	// unanswered are pings whose echo has not come. It may still come, and
	// is then not taken for that of a later one.
	unanswered []sentPing
}

type sentPing struct {
	seed     uint64
	words    int
	datatype protocol.Datatype
}

// pingers keeps the pinger of each pair of ranks that was pinged.
type pingers struct {
	mu    sync.Mutex
	pairs map[[2]int]*pinger
}

// acquire returns the pair's pinger once no other ping uses it.
func (ps *pingers) acquire(ctx context.Context, from, to int) (*pinger, error) {
	ps.mu.Lock()
	if ps.pairs == nil {
		ps.pairs = make(map[[2]int]*pinger)
	}
	p := ps.pairs[[2]int{from, to}]
	if p == nil {
		p = &pinger{busy: make(chan struct{}, 1)}
		ps.pairs[[2]int{from, to}] = p
	}
	ps.mu.Unlock()
	select {
	case p.busy <- struct{}{}:
		return p, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pinger) release() { <-p.busy }

// trip makes one round trip, into t.
func (p *pinger) trip(ctx context.Context, port Port, datatype protocol.Datatype, t *Trip) {
	sent := sentPing{t.Seed, t.Words, datatype}
	data := make([]byte, t.Words*protocol.WordLen)
	Payload(data, t.Seed, datatype)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The receive is posted beside the send: an FPGA's answer then finds it.
	echo := make(chan echoed, 1)
	go func() { echo <- p.receive(ctx, port, t.To, sent) }()
	out, err := port.Send(ctx, t.To, data, mpe.Options{Datatype: datatype})
	if err != nil {
		cancel(context.Canceled)
	}
	back := <-echo
	p.unanswered, t.Late = back.unanswered, back.late
	if err == nil {
		err = back.err
	}
	if err != nil {
		if piece := port.Cut(t.To); KindOf(err) == Timeout && (piece == 0 || t.Words <= piece) {
			p.remember(sent)
		}
		t.fail(err)
		return
	}
	t.Out, t.Back = phasesOf(out.Phases), phasesOf(back.status.Phases)
	t.RoundTrip = micros(max(back.status.Phases.Ack, back.status.Phases.Data) - out.Phases.Start)
	p.verify(t, data, back)
}

// echoed is what receive has found.
type echoed struct {
	status     mpe.Status
	data       []byte
	late       int
	unanswered []sentPing
	err        error
}

// receive receives the echo of sent, and skips those of pings before it.
func (p *pinger) receive(ctx context.Context, port Port, peer int, sent sentPing) echoed {
	e := echoed{unanswered: p.unanswered}
	words := sent.words
	for _, earlier := range e.unanswered {
		words = max(words, earlier.words)
	}
	buf := make([]byte, words*protocol.WordLen)
	opts := mpe.Options{Datatype: sent.datatype, AnyDatatype: len(e.unanswered) > 0}
	for {
		e.status, e.err = gather(ctx, port, peer, buf, sent.words, opts)
		if e.err != nil {
			return e
		}
		e.data = buf[:min(len(buf), int(e.status.Words)*protocol.WordLen)]
		if sent.is(e.data) {
			return e
		}
		i := e.indexOf(e.data)
		if i < 0 {
			return e
		}
		e.late++
		e.unanswered = e.unanswered[i+1:]
	}
}

// gather receives a message of the given words that was sent in pieces, if the
// port cuts messages to the peer: an echo comes back in the same pieces.
func gather(ctx context.Context, port Port, peer int, buf []byte, words int, opts mpe.Options) (mpe.Status, error) {
	piece := port.Cut(peer)
	st, err := port.Recv(ctx, peer, buf, opts)
	for err == nil && piece > 0 && int(st.Words) < words && int(st.Words)%piece == 0 {
		var next mpe.Status
		next, err = port.Recv(ctx, peer, buf[int(st.Words)*protocol.WordLen:], opts)
		if next.Words == 0 {
			break
		}
		st = Join(st, next)
	}
	return st, err
}

// Join returns the status of a message whose pieces were a and then b.
func Join(a, b mpe.Status) mpe.Status {
	a.Words += b.Words
	a.Phases.Data, a.Phases.Ack = b.Phases.Data, b.Phases.Ack
	a.Phases.Repeats += b.Phases.Repeats
	return a
}

// indexOf returns which of the unanswered pings data is the echo of, or -1.
func (e *echoed) indexOf(data []byte) int {
	for i, earlier := range e.unanswered {
		if earlier.is(data) {
			return i
		}
	}
	return -1
}

// is reports whether data is the payload of the ping.
func (s sentPing) is(data []byte) bool {
	if len(data) != s.words*protocol.WordLen {
		return false
	}
	want := make([]byte, len(data))
	Payload(want, s.seed, s.datatype)
	return firstDifference(want, data) < 0
}

func (p *pinger) remember(sent sentPing) {
	if len(p.unanswered) == maxUnanswered {
		p.unanswered = p.unanswered[1:]
	}
	p.unanswered = append(p.unanswered, sent)
}

// verify compares the echo with what was sent.
func (p *pinger) verify(t *Trip, want []byte, back echoed) {
	if int(back.status.Words) != t.Words {
		t.fail(Errorf(Mismatch, "rank %d sent %d words back instead of %d", t.To, back.status.Words, t.Words))
		return
	}
	i := firstDifference(want, back.data)
	if i < 0 {
		t.Verified = true
		return
	}
	at := i * protocol.WordLen
	t.Mismatch = &Difference{Word: i, Want: binary.LittleEndian.Uint32(want[at:]), Got: binary.LittleEndian.Uint32(back.data[at:])}
	t.fail(Errorf(Mismatch, "rank %d sent other data back: word %d of %d is 0x%08x, but was sent as 0x%08x",
		t.To, i, t.Words, t.Mismatch.Got, t.Mismatch.Want))
}

// withTimeout is context.WithTimeout, where 0 is no time-out.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, &timeoutError{d})
}

// timeoutError is the end of a caller's patience.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return "gave up after " + e.after.String() }
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
