package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// call is a ping whose caller may disconnect.
type call struct {
	cancel context.CancelCauseFunc
	ended  chan Trip // receives the last trip
}

// begin starts a ping of one word to rank 1. It returns when the ping can make no more progress.
func begin(s *Server, timeout string) *call {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &call{cancel, make(chan Trip, 1)}
	body := fmt.Sprintf(`{"to": 1, "count": 2, "timeout": %q}`, timeout)
	go func() {
		w := httptest.NewRecorder()
		s.ping(w, httptest.NewRequest(http.MethodPost, "/v1/ping", strings.NewReader(body)).WithContext(ctx))
		var t Trip
		for dec := json.NewDecoder(w.Body); dec.More() && dec.Decode(&t) == nil; {
		}
		c.ended <- t
	}()
	synctest.Wait()
	return c
}

// TestPingWithoutCaller checks that a ping whose caller has disconnected continues until its echo arrives,
// another ping begins, the daemon stops, or its deadline expires.
func TestPingWithoutCaller(t *testing.T) {
	const logged = "ping failed after its caller disconnected: rank 0 to rank 1, 1 words: rank 0 waits for rank 1: "
	for _, tt := range []struct {
		name  string
		cause error
		next  func(s *Server, b *fakeBackend, echo []byte)
		after time.Duration
		log   string
	}{
		{"its echo comes", context.Canceled, func(_ *Server, b *fakeBackend, echo []byte) { b.sent <- echo }, 0, ""},
		{"another ping begins", context.Canceled, func(s *Server, b *fakeBackend, echo []byte) {
			b.echo = func(data []byte) []byte {
				b.sent <- echo // the echo arrives late
				b.echo = nil
				return data
			}
			other := begin(s, "1s")
			if trip := <-other.ended; !trip.Verified {
				t.Errorf("the other ping: %+v", trip)
			}
		}, 0, logged + "superseded by another ping\n"},
		{"the deadline expires", context.Canceled, nil, PingLinger, logged + "context canceled\n"},
		{"the daemon stops", Errorf(Closed, "the daemon is shutting down"), nil, shutdownTimeout / 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var echo []byte
				b := &fakeBackend{sent: make(chan []byte, 100), echo: func(data []byte) []byte {
					echo = data
					return nil
				}}
				var said bytes.Buffer
				s := NewServer(b, log.New(&said, "", 0))
				c := begin(s, "0s")
				c.cancel(tt.cause)
				synctest.Wait()
				left := time.Now()
				if tt.next != nil {
					tt.next(s, b, echo)
				}
				trip := <-c.ended
				if d := time.Since(left); d != tt.after {
					t.Errorf("it continued for %v, want %v", d, tt.after)
				}
				if trip.Kind != KindOf(tt.cause) {
					t.Errorf("it ends with %+v", trip)
				}
				if said.String() != tt.log {
					t.Errorf("the log says %q, want %q", said.String(), tt.log)
				}
			})
		})
	}
}

// TestPingSaysWhatIsLeft checks that the error of a ping describes the state of the peer.
func TestPingSaysWhatIsLeft(t *testing.T) {
	wait := func(state handshake.State, inTransfer bool) error {
		return fmt.Errorf("%w: %w", &mpe.WaitError{Wait: handshake.Wait{State: state}, InTransfer: inTransfer},
			context.DeadlineExceeded)
	}
	for _, tt := range []struct {
		send, recv error
		text       string
	}{
		{wait(handshake.WaitClear, false), wait(handshake.WaitRequest, false),
			"rank 1 is not receiving; restart the role of an FPGA that was interrupted in the middle of a message"},
		{wait(handshake.Held, false), wait(handshake.WaitData, true), "rank 1 is not receiving; restart the role"},
		{wait(handshake.WaitAck, true), wait(handshake.WaitRequest, false),
			"rank 1 may have the message; the next ping waits for the transfer, and skips the echo"},
		{nil, wait(handshake.WaitRequest, false),
			"rank 1 has the message, but has not sent SEND_REQUEST for its echo; the next ping skips a late echo"},
		{nil, wait(handshake.WaitData, true),
			"rank 1 has the message and is sending its echo; the next ping skips that echo"},
		{nil, wait(handshake.Receiving, true),
			"rank 1 has the message and is sending its echo; the next ping skips that echo"},
		{handshake.ErrPartial, wait(handshake.WaitRequest, false), ""},
		{nil, nil, ""},
	} {
		x := &exchange{peer: 1, sendErr: tt.send, err: tt.recv}
		err := x.describeError()
		if first := cmp.Or(tt.send, tt.recv); !errors.Is(err, first) {
			t.Errorf("%v is lost in %v", first, err)
		}
		if text := fmt.Sprint(err); !strings.Contains(text, tt.text) {
			t.Errorf("send %v, receive %v: %q, want %q", tt.send, tt.recv, text, tt.text)
		}
	}
}
