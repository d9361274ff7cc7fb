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

// PingRequest describes a ping: messages to a rank that returns each of them, as the echo kernel does.
type PingRequest struct {
	// From is the local rank, or AnyRank.
	From int `json:"from"`
	To   int `json:"to"`
	// Words is the length of each message in words.
	Words int `json:"words"`
	// Count is the number of consecutive round trips. It must be at least 1.
	Count    int    `json:"count"`
	Datatype string `json:"datatype"`
	// Timeout is the maximum duration of each round trip, in the syntax of time.ParseDuration. "0s" means no limit.
	Timeout string `json:"timeout"`
	// Seed determines the payload: message i, counted from 0, is the output of FillPayload with seed Seed + i. If Seed
	// is 0, the daemon chooses a seed.
	Seed uint64 `json:"seed,omitempty"`
}

// Trip is one round trip of a ping.
type Trip struct {
	Seq   int    `json:"seq"`
	From  int    `json:"src"`
	To    int    `json:"dst"`
	Words int    `json:"words"`
	Seed  uint64 `json:"seed"`
	// RoundTrip is the time from posting the send to the last byte of the echo, in microseconds.
	RoundTrip Micros `json:"round_trip_us"`
	// SendPhases contains the phases of the message sent, and EchoPhases contains the phases of its echo.
	SendPhases Phases `json:"out"`
	EchoPhases Phases `json:"back"`
	// Verified is set if every byte of the echo was compared and is correct.
	Verified bool `json:"verified"`
	// SkippedMessages is the number of messages skipped because the peer began to send them before it received the
	// ping's message. They may be echoes of earlier pings.
	SkippedMessages int `json:"late,omitempty"`
	// Error and Kind describe why the round trip failed. A ping ends with its first failed round trip, unless Kind is
	// Mismatch.
	Error string `json:"error,omitempty"`
	Kind  Kind   `json:"kind,omitempty"`
	// Mismatch describes the first difference between the message sent and an echo of the same length. It is nil if the
	// two are equal.
	Mismatch *Difference `json:"mismatch,omitempty"`
}

// Difference describes a word of an echo that differs from the word sent.
type Difference struct {
	// Word is the index of the word in the message, counted from 0.
	Word int    `json:"word"`
	Want uint32 `json:"want"`
	Got  uint32 `json:"got"`
}

func (t *Trip) setError(err error) {
	e := AsError(err)
	t.Error, t.Kind = e.Message, e.Kind
}

// roundTrip makes one round trip and fills in trip. If the port would split the message, roundTrip sends one piece at a
// time, and receives the echo of each piece before it sends the next one.
func (p *pinger) roundTrip(ctx context.Context, port Port, datatype protocol.Datatype, trip *Trip) {
	data := make([]byte, trip.Words*protocol.WordLen)
	FillPayload(data, trip.Seed, datatype)
	piece := len(data)
	if cut := port.PieceWords(trip.To) * protocol.WordLen; cut > 0 {
		piece = min(piece, cut)
	}
	var out, back mpe.Status
	for off := 0; ; off += piece {
		x := p.exchange(ctx, port, trip.To, data[off:off+min(piece, len(data)-off)], datatype)
		trip.SkippedMessages += x.skipped
		if x.err != nil {
			trip.setError(x.err)
			return
		}
		if !x.verify(trip, off/protocol.WordLen) {
			return
		}
		if off == 0 {
			out, back = x.sendStatus, x.echoStatus
		} else {
			out, back = JoinStatus(out, x.sendStatus), JoinStatus(back, x.echoStatus)
		}
		if off+piece >= len(data) {
			break
		}
	}
	trip.Verified = true
	trip.SendPhases, trip.EchoPhases = newPhases(out.Phases), newPhases(back.Phases)
	trip.RoundTrip = Micros(toMicros(max(back.Phases.Ack, back.Phases.Data) - out.Phases.Start))
}

// verify compares the echo of a piece with the data sent. The argument word is the index, within the message, of the
// first word in the piece.
func (x *exchange) verify(trip *Trip, word int) bool {
	if len(x.echo) != len(x.data) {
		trip.setError(Errorf(Mismatch, "rank %d echoed %d words instead of %d", trip.To, x.echoStatus.Words,
			len(x.data)/protocol.WordLen))
		return false
	}
	i := firstDifference(x.data, x.echo)
	if i < 0 {
		return true
	}
	at := i * protocol.WordLen
	trip.Mismatch = &Difference{Word: word + i, Want: binary.LittleEndian.Uint32(x.data[at:]),
		Got: binary.LittleEndian.Uint32(x.echo[at:])}
	trip.setError(Errorf(Mismatch, "rank %d echoed other data: word %d of %d is 0x%08x, but was sent as 0x%08x",
		trip.To, trip.Mismatch.Word, trip.Words, trip.Mismatch.Got, trip.Mismatch.Want))
	return false
}

// JoinStatus returns the status of a message sent in two parts, a and then b.
func JoinStatus(a, b mpe.Status) mpe.Status {
	a.Words += b.Words
	a.Phases.Data, a.Phases.Ack = b.Phases.Data, b.Phases.Ack
	a.Phases.Retransmissions += b.Phases.Retransmissions
	return a
}

// withTimeout is like context.WithTimeout, except that a timeout of 0 means no limit.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, &timeoutError{d})
}

// callerContext returns a context that is cancelled together with the request's context. If the caller closed its side
// of the connection, the cause is a cancelledError.
func callerContext(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	detach := context.AfterFunc(r.Context(), func() {
		cause := context.Cause(r.Context())
		if errors.Is(cause, context.Canceled) { // the daemon is not stopping
			cause = cancelledError{}
		}
		cancel(cause)
	})
	return ctx, func() {
		detach()
		cancel(nil)
	}
}

// cancelledError is the cancellation cause of an operation whose caller closed its side of the connection.
type cancelledError struct{}

func (cancelledError) Error() string { return "cancelled by its caller" }
func (cancelledError) Unwrap() error { return context.Canceled }

// timeoutError reports that a caller's timeout has expired.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string {
	if e.after < time.Second {
		return fmt.Sprintf("timed out after %v ms", float64(e.after)/1e6)
	}
	return fmt.Sprintf("timed out after %v s", e.after.Seconds())
}
func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }
