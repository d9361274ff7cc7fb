package control

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// PingRequest describes messages to a rank that returns each of them, like the echo kernel.
type PingRequest struct {
	// From is the local rank, or AnyRank.
	From int `json:"from"`
	To   int `json:"to"`
	// Words is the length of each message in words.
	Words int `json:"words"`
	// Count is the number of consecutive round trips, at least 1.
	Count    int    `json:"count"`
	Datatype string `json:"datatype"`
	// Timeout limits each round trip, in the syntax of time.ParseDuration; "0s" means no limit.
	Timeout string `json:"timeout"`
	// Seed determines the payload: message i, counted from 0, is Payload of Seed + i. 0 lets the daemon choose.
	Seed uint64 `json:"seed,omitempty"`
}

// Trip is one round trip of a ping.
type Trip struct {
	Seq   int    `json:"seq"`
	From  int    `json:"src"`
	To    int    `json:"dst"`
	Words int    `json:"words"`
	Seed  uint64 `json:"seed"`
	// RoundTrip is the time from the post of the send to the last byte of the echo, in microseconds.
	RoundTrip Micros `json:"round_trip_us"`
	// Out has the phases of our message, and Back those of its echo.
	Out  Phases `json:"out"`
	Back Phases `json:"back"`
	// Verified is set if every byte of the echo was compared and is correct.
	Verified bool `json:"verified"`
	// Late is the number of skipped messages that the peer began to send before it received ours, such as
	// echoes of earlier pings.
	Late int `json:"late,omitempty"`
	// Error and Kind are the reason why the round trip failed. A failed round trip is the last of its ping,
	// unless Kind is Mismatch.
	Error string `json:"error,omitempty"`
	Kind  Kind   `json:"kind,omitempty"`
	// Mismatch is the first difference of an echo of the right length.
	Mismatch *Difference `json:"mismatch,omitempty"`
}

// Difference is a word of an echo that differs from the word sent.
type Difference struct {
	// Word is the index in the message, counted from 0.
	Word int    `json:"word"`
	Want uint32 `json:"want"`
	Got  uint32 `json:"got"`
}

func (t *Trip) fail(err error) {
	e := AsError(err)
	t.Error, t.Kind = e.Message, e.Kind
}

// trip makes one round trip, and fills t. A message that the port would split is sent piece by piece: its echo
// arrives in the same pieces, each before the peer receives the next.
func (p *pinger) trip(ctx context.Context, port Port, datatype protocol.Datatype, t *Trip) {
	data := make([]byte, t.Words*protocol.WordLen)
	Payload(data, t.Seed, datatype)
	piece := len(data)
	if cut := port.Cut(t.To) * protocol.WordLen; cut > 0 {
		piece = min(piece, cut)
	}
	var out, back mpe.Status
	for off := 0; ; off += piece {
		x := p.exchange(ctx, port, t.To, data[off:off+min(piece, len(data)-off)], datatype)
		t.Late += x.late
		if x.err != nil {
			t.fail(x.err)
			return
		}
		if !x.verify(t, off/protocol.WordLen) {
			return
		}
		if off == 0 {
			out, back = x.out, x.back
		} else {
			out, back = Join(out, x.out), Join(back, x.back)
		}
		if off+piece >= len(data) {
			break
		}
	}
	t.Verified = true
	t.Out, t.Back = phasesOf(out.Phases), phasesOf(back.Phases)
	t.RoundTrip = Micros(micros(max(back.Phases.Ack, back.Phases.Data) - out.Phases.Start))
}

// verify compares the echo of a piece, which begins at the given word of the message, with the data sent.
func (x *exchange) verify(t *Trip, word int) bool {
	if len(x.echo) != len(x.data) {
		t.fail(Errorf(Mismatch, "rank %d echoed %d words instead of %d", t.To, x.back.Words,
			len(x.data)/protocol.WordLen))
		return false
	}
	i := firstDifference(x.data, x.echo)
	if i < 0 {
		return true
	}
	at := i * protocol.WordLen
	t.Mismatch = &Difference{Word: word + i, Want: binary.LittleEndian.Uint32(x.data[at:]),
		Got: binary.LittleEndian.Uint32(x.echo[at:])}
	t.fail(Errorf(Mismatch, "rank %d echoed other data: word %d of %d is 0x%08x, but was sent as 0x%08x",
		t.To, t.Mismatch.Word, t.Words, t.Mismatch.Got, t.Mismatch.Want))
	return false
}

// Join returns the status of a message sent in two parts, a followed by b.
func Join(a, b mpe.Status) mpe.Status {
	a.Words += b.Words
	a.Phases.Data, a.Phases.Ack = b.Phases.Data, b.Phases.Ack
	a.Phases.Retransmissions += b.Phases.Retransmissions
	return a
}

// withTimeout is context.WithTimeout, but 0 means no timeout.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, &timeoutError{d})
}

// ofCaller returns a context that ends with the request's context. Its cause reports a cancellation by the
// caller.
func ofCaller(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	detach := context.AfterFunc(r.Context(), func() {
		cause := context.Cause(r.Context())
		if errors.Is(cause, context.Canceled) { // and not the end of the daemon
			cause = cancelledError{}
		}
		cancel(cause)
	})
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// cancelledError is the cause of an operation whose caller closed its side of the connection.
type cancelledError struct{}

func (cancelledError) Error() string { return "cancelled by its caller" }
func (cancelledError) Unwrap() error { return context.Canceled }

// timeoutError is the expiry of a caller's timeout.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	if e.after < time.Second {
		return fmt.Sprintf("timed out after %v ms", float64(e.after)/1e6)
	}
	return fmt.Sprintf("timed out after %v s", e.after.Seconds())
}
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
