package mpemodel

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Second half of the list; see traps_test.go.

func TestTrap8ReceiverOfNoWordsTakesTheNextPacketForPayload(t *testing.T) {
	r := begin(t, 0)
	r.in(0, modeltest.Header(protocol.Data, 0, 1, 0))
	r.wantState("RECV_DATA_RD")
	r.wantWedged("trap 8")
	r.after(60 * 1000 * ms)
	r.wantOut()
	r.in(0, modeltest.Header(protocol.Data, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	if _, overrun, done := r.Result(); !overrun || !done {
		t.Errorf("overrun %v, done %v", overrun, done)
	}
	// The second 16 bytes of the header are left over.
	r.recv(0, 2)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0), modeltest.Message(0, 1, []uint32{1, 2})[0])
	r.wantBuffer(modeltest.DecodeWords(modeltest.Header(protocol.Data, 0, 1, 0))[4:6])
}

func TestTrap8HeaderWithoutItsPayload(t *testing.T) {
	r := begin(t, 5)
	r.in(0, modeltest.Header(protocol.Data, 0, 1, 5))
	r.wantState("RECV_DATA_RD")
	r.wantWedged("trap 8")
}

func TestTrap8SenderOfNoWordsSendsALine(t *testing.T) {
	r := newRig(t)
	r.send(0, nil)
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0),
		append(modeltest.Header(protocol.Data, 1, 0, 0), make([]byte, 8)...))
	r.in(0, modeltest.Header(protocol.Ack, 0, 1, 0))
	if _, _, done := r.Result(); !done {
		t.Error("the send has not returned")
	}
}

func TestTrap10ShortDatagramEatsTheNextOne(t *testing.T) {
	for _, n := range []int{1, 8, 16} {
		r := newRig(t)
		r.recv(0, 1)
		r.in(0, make([]byte, n))
		r.wantState("WAIT4REQ_1")
		r.wantWedged("trap 10")
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
		r.wantOut()
		r.wantState("WAIT4REQ")
		// From now on sources are read one datagram late: rank 2's packet counts as rank 0's, and is deferred instead
		// of answered.
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
		r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
		r.in(0, modeltest.Message(0, 1, []uint32{9})[0])
		r.wantBuffer([]uint32{9})
		r.TakePackets()
		r.recv(2, 1)
		r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
		r.wantOut()
		r.wantState("WAIT4REQ")
		r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
		r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
	}
}

func TestTrap10HalfAHeaderStopsTheTimeout(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
	r.in(0, make([]byte, 16))
	if at, ok := r.NextEvent(); ok {
		t.Errorf("a timeout at %v", at)
	}
	r.after(60 * 1000 * ms)
	r.wantOut()
	r.wantState("WAIT4CLEAR_1")
}

func TestTrap10DatagramsOf17To31BytesAreIgnored(t *testing.T) {
	for n := 17; n < 32; n++ {
		r := newRig(t)
		r.recv(0, 1)
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0)[:n])
		r.wantOut()
		r.wantState("WAIT4REQ")
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
		r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	}
}

func TestTrap10LongControlPacketIsDrained(t *testing.T) {
	for _, n := range []int{33, 40, 1416} {
		long := func(b []byte) []byte { return append(b, make([]byte, n-len(b))...) }
		r := newRig(t)
		r.recv(0, 1)
		r.in(0, long(modeltest.Header(protocol.SendRequest, 0, 1, 0)))
		r.wantOut()
		r.wantState("WAIT4REQ")
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
		// It is not even deferred.
		r.in(2, long(modeltest.Header(protocol.SendRequest, 2, 1, 0)))
		r.in(0, modeltest.Message(0, 1, []uint32{1})[0])
		r.TakePackets()
		r.recv(2, 1)
		r.wantOut()
	}
}

func TestTrap11DestinationRankIsNotChecked(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 63, 0))
	r.in(0, modeltest.Message(0, 4000, []uint32{42})[0])
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0), modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer([]uint32{42})
}

func TestTrap11SourceRankMustFitTheAddress(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	r.in(2, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut()
	r.wantState("WAIT4REQ")
	r.in(0, modeltest.Header(protocol.SendRequest, 64, 1, 0))
	r.wantOut()
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

func TestTrap12MoreWordsThanPostedOverrunTheBuffer(t *testing.T) {
	for _, c := range []struct {
		posted, sent int
		overrun      bool
	}{
		{2, 2, false}, {2, 3, true}, {2, 400, true}, {1, 2, false}, {1, 3, true}, {3, 4, false}, {4, 3, false},
	} {
		r := begin(t, uint32(c.posted))
		words := modeltest.PatternWords(0, 0, c.sent)
		r.in(0, modeltest.Message(0, 1, words)...)
		r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
		want := make([]uint32, c.posted)
		copy(want, words)
		r.wantBuffer(want)
		if _, overrun, _ := r.Result(); overrun != c.overrun {
			t.Errorf("posted %d, sent %d: overrun %v", c.posted, c.sent, overrun)
		}
	}
}
