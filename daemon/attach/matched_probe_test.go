package attach

import (
	"errors"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// unexpected returns the number of unexpected messages at a rank.
func unexpected(d mpe.Device) (n int) {
	d.(*mpe.Engine).Counters(func(c *state.RankCounters) { n = c.Unexpected }, func(*state.PeerCounters) {})
	return n
}

// TestMatchedProbe checks that a message found by a matched probe can be received only by its number, and only
// once, no matter what else is received in the meantime.
func TestMatchedProbe(t *testing.T) {
	devices := engines(t, 2, nil)
	h := serveDevices(t, devices, Options{Limits: wire.Limits{Operations: 2, Bytes: 1 << 20}})
	c := h.dial(t, 1)
	claim := func() mpe.Status {
		t.Helper()
		st, found, err := c.Probe(attachtest.TestContext(t), mpe.Match{Source: 0, Tag: mpe.AnyTag, Claim: true}, true)
		if err != nil || !found || st.Claim == 0 {
			t.Fatalf("%+v, %v, %v", st, found, err)
		}
		return st
	}
	for _, text := range []string{"first", "second", "third"} {
		attachtest.Wait(t, attachtest.Send(t, devices[0], 1, 5, []byte(text)))
	}
	first, second := claim(), claim()
	if _, _, err := c.Probe(attachtest.TestContext(t), mpe.Match{Source: 0, Tag: mpe.AnyTag, Claim: true},
		false); !errors.Is(err, mpe.ErrFull) {
		t.Errorf("a third message of a matched probe, of two that there may be: %v", err)
	}
	receive := func(tag int, comm uint32) string {
		t.Helper()
		buf := make([]byte, 10)
		op, err := c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: tag, Comm: comm, Buf: buf})
		if err != nil {
			t.Fatal(err)
		}
		st, err := op.Await(attachtest.TestContext(t))
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:st.Bytes])
	}
	got := []string{receive(5, 0), receive(second.Claim, mpe.ClaimComm), receive(first.Claim, mpe.ClaimComm)}
	if want := [3]string{"third", "second", "first"}; [3]string(got) != want {
		t.Errorf("received %q, want %q", got, want)
	}
	if n := unexpected(devices[1]); n > 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestMatchedProbeOfNobody checks that, when a program ends, the messages of its matched probes that it has not
// received are dropped, even if their payload has not been sent yet.
func TestMatchedProbeOfNobody(t *testing.T) {
	devices := engines(t, 2, nil)
	h := serveDevices(t, devices, Options{})
	for _, size := range []int{4, 1 << 20} {
		c := h.dial(t, 1)
		op := attachtest.Send(t, devices[0], 1, 5, make([]byte, size))
		if st, found, err := c.Probe(attachtest.TestContext(t), mpe.Match{Source: mpe.AnySource, Tag: 5, Claim: true},
			true); !found || err != nil || st.Claim == 0 {
			t.Fatalf("%+v, %v, %v", st, found, err)
		}
		if err := c.Close(attachtest.TestContext(t)); err != nil {
			t.Error(err)
		}
		attachtest.Wait(t, op) // the sender does not wait for an impossible receive
		attachtest.WaitUntil(t, "the message has been dropped", func() bool { return unexpected(devices[1]) == 0 })
	}
	if _, found, err := h.dial(t, 1).Probe(attachtest.TestContext(t), mpe.Match{Source: mpe.AnySource, Tag: mpe.AnyTag},
		false); found || err != nil {
		t.Errorf("the next program finds a message: %v, %v", found, err)
	}
}
