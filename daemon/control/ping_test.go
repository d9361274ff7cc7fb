package control

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func pingOnce(t *testing.T, c *Client, change func(*PingRequest)) ([]Trip, error) {
	t.Helper()
	req := PingRequest{From: AnyRank, To: 1, Words: 10, Count: 1, Datatype: "int", Timeout: "20s", Seed: 5}
	if change != nil {
		change(&req)
	}
	var trips []Trip
	err := c.Ping(within(t), req, func(t Trip) error {
		trips = append(trips, t)
		return nil
	})
	return trips, err
}

func TestPingTrip(t *testing.T) {
	c := fakeServer(t, new(fakeBackend))
	trips, err := pingOnce(t, c, func(r *PingRequest) { r.Count = 3; r.Words = 1000 })
	if err != nil || len(trips) != 3 {
		t.Fatal(trips, err)
	}
	want := Trip{
		Seq: 2, To: 1, Words: 1000, Seed: 7, RoundTrip: 20, Verified: true,
		SendPhases: Phases{RequestToClear: 1, ClearToData: 2, DataToAck: 4}, EchoPhases: Phases{RequestToClear: 1,
			ClearToData: 10},
	}
	if trips[2] != want {
		t.Errorf("got  %+v\nwant %+v", trips[2], want)
	}
}

func TestPingCut(t *testing.T) {
	c := fakeServer(t, &fakeBackend{cut: 3})
	for words := range 20 {
		trips, err := pingOnce(t, c, func(r *PingRequest) { r.Words = words })
		if err != nil || len(trips) != 1 || !trips[0].Verified {
			t.Errorf("%d words: %+v, %v", words, trips, err)
		}
	}
}

func TestPingMismatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		echo func([]byte) []byte
		at   int // -1: no difference
		text string
	}{
		{"one bit", func(b []byte) []byte { b[23] ^= 0x80; return b }, 5,
			"rank 1 echoed other data: word 5 of 10 is 0x"},
		{"short", func(b []byte) []byte { return b[:8] }, -1, "rank 1 echoed 2 words instead of 10"},
		{"empty", func(b []byte) []byte { return b[:0] }, -1, "rank 1 echoed 0 words instead of 10"},
	} {
		c := fakeServer(t, &fakeBackend{echo: tt.echo})
		trips, err := pingOnce(t, c, func(r *PingRequest) { r.Count = 2 })
		if err != nil || len(trips) != 2 { // the following round trips are still attempted
			t.Fatal(tt.name, trips, err)
		}
		trip := trips[0]
		if trip.Verified || trip.Kind != Mismatch || !strings.HasPrefix(trip.Error, tt.text) ||
			(trip.Mismatch != nil) != (tt.at >= 0) {
			t.Errorf("%s: %+v", tt.name, trip)
		}
		if m := trip.Mismatch; m != nil && (m.Word != tt.at || m.Want^m.Got != 1<<31) {
			t.Errorf("%s: %+v", tt.name, m)
		}
	}
	c := fakeServer(t, &fakeBackend{echo: func(b []byte) []byte { return append(b, b...) }})
	if trips, err := pingOnce(t, c, nil); err != nil || trips[0].Kind != Truncated {
		t.Errorf("too long: %+v, %v", trips, err)
	}
}

// TestPingLate checks that an echo that arrives after the deadline of its ping is not mistaken for the echo of
// the next ping.
func TestPingLate(t *testing.T) {
	var late [][]byte
	b := &fakeBackend{echo: func(data []byte) []byte {
		late = append(late, data)
		return nil
	}}
	c := fakeServer(t, b)
	for i := range 2 {
		trips, err := pingOnce(t, c, func(r *PingRequest) { r.Timeout, r.Words, r.Seed = "1ms", 20, uint64(100+i) })
		if err != nil || len(trips) != 1 || trips[0].Kind != Timeout {
			t.Fatalf("%+v, %v", trips, err)
		}
	}
	b.echo = nil
	for _, data := range late {
		b.sent <- data
	}
	trips, err := pingOnce(t, c, func(r *PingRequest) { r.Count = 2 })
	if err != nil || len(trips) != 2 || !trips[0].Verified || trips[0].SkippedMessages != 2 || !trips[1].Verified ||
		trips[1].SkippedMessages != 0 {
		t.Errorf("%+v, %v", trips, err)
	}
}

// TestPingBusy checks that a ping waits for another ping between the same ranks to end.
func TestPingBusy(t *testing.T) {
	b := &fakeBackend{echo: func([]byte) []byte { return nil }}
	c := fakeServer(t, b)
	ctx, cancel := context.WithCancel(within(t))
	stuck := make(chan error, 1)
	began := make(chan struct{})
	b.echo = func([]byte) []byte { close(began); return nil }
	go func() {
		stuck <- c.Ping(ctx, PingRequest{From: 0, To: 1, Words: 1, Count: 1, Datatype: "int", Timeout: "0s"},
			func(Trip) error { return nil })
	}()
	<-began
	trips, err := pingOnce(t, c, func(r *PingRequest) { r.Timeout = "1ms" })
	if err != nil || trips[0].Kind != Timeout ||
		!strings.Contains(trips[0].Error, "another ping from rank 0 to rank 1 is in progress") {
		t.Errorf("%+v, %v", trips, err)
	}
	cancel()
	if err := <-stuck; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled ping: %v", err)
	}
}

func TestPayload(t *testing.T) {
	for _, datatype := range []protocol.Datatype{protocol.Int, protocol.Float} {
		a, b, c := make([]byte, 4000), make([]byte, 4000), make([]byte, 4000)
		FillPayload(a, 1, datatype)
		FillPayload(b, 1, datatype)
		FillPayload(c, 2, datatype)
		if i := firstDifference(a, b); i != -1 {
			t.Errorf("%v: the same seed differs in word %d", datatype, i)
		}
		if i := firstDifference(a, c); i != 0 {
			t.Errorf("%v: another seed differs in word %d first, want 0", datatype, i)
		}
	}
}
