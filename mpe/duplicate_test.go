package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// deployedPeer is an engine of rank 0. The test plays its peer, an FPGA of rank 1.
type deployedPeer struct {
	t      *testing.T
	tr     *script
	engine *mpe.Engine
}

func newDeployedPeer(t *testing.T) *deployedPeer {
	t.Helper()
	rules := handshake.FPGAPeer(1)
	tr := &script{in: make(chan datagram, 16)}
	engine, err := mpe.New(mpe.Config{Peers: []mpe.Peer{{}, {Transport: tr, Handshake: handshake.Config{
		Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &deployedPeer{t, tr, engine}
}

// close closes the engine, in the test's bubble.
func (p *deployedPeer) close() {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	p.engine.Close(ctx)
}

// gets passes a packet from the peer to the engine.
func (p *deployedPeer) gets(typ protocol.Type, call protocol.Call, payload []byte) {
	h := protocol.Header{Src: 1, Call: call, Type: typ, Size: uint32(len(payload) / protocol.WordLen)}
	p.tr.in <- datagram{src: 1, b: append(protocol.CloudFPGA.Append(nil, h), payload...)}
	synctest.Wait()
}

// sent checks the packets sent to the peer since the last call.
func (p *deployedPeer) sent(want ...protocol.Type) {
	p.t.Helper()
	synctest.Wait()
	p.tr.mu.Lock()
	defer p.tr.mu.Unlock()
	var got []protocol.Type
	for _, d := range p.tr.out {
		h, _ := protocol.CloudFPGA.Parse(d.b)
		got = append(got, h.Type)
	}
	p.tr.out = nil
	if len(got) != len(want) {
		p.t.Fatalf("sent %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			p.t.Fatalf("sent %v, want %v", got, want)
		}
	}
}

const (
	request  = protocol.SendRequest
	cleared  = protocol.ClearToSend
	data     = protocol.Data
	ack      = protocol.Ack
	sendCall = protocol.SendInt
	recvCall = protocol.RecvInt
)

// TestReceiveOfADuplicateIsPostedAgain checks that, if a late duplicate of a SEND_REQUEST has matched the first of
// two receives, that receive regains its position when the peer shows that it is not sending.
func TestReceiveOfADuplicateIsPostedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newDeployedPeer(t)
		defer p.close()
		var recvs [2]*mpe.Request
		bufs := [2][]byte{make([]byte, 4), make([]byte, 4)}
		for i := range recvs {
			r, err := p.engine.Irecv(1-2*i, bufs[i], mpe.Options{AnyTag: true}) // from rank 1, and from any
			if err != nil {
				t.Fatal(err)
			}
			recvs[i] = r
		}
		p.gets(request, sendCall, nil)
		p.sent(cleared)
		send, err := p.engine.Isend(1, words(1, 1), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(110 * time.Millisecond)
		p.sent(request)
		p.gets(cleared, recvCall, nil)
		if s := p.engine.Snapshot().Peers[0]; s.UnansweredClear == nil || s.Sending == nil {
			t.Errorf("the snapshot does not show both calls of the peer: %+v", s)
		}
		time.Sleep(113 * time.Millisecond)
		p.gets(cleared, recvCall, nil)
		p.sent(data)
		p.gets(ack, recvCall, nil)
		if _, err := send.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range recvs {
			in := words(1, uint32(i+7))
			p.gets(request, sendCall, nil)
			p.sent(cleared)
			p.gets(data, sendCall, in)
			p.sent(ack)
			if _, err := recvs[i].Wait(t.Context()); err != nil || !bytes.Equal(bufs[i], in) {
				t.Fatalf("receive %d: %v, %x", i, err, bufs[i])
			}
		}
		if s := p.engine.Snapshot().Peers[0]; s.UnansweredClear != nil {
			t.Errorf("the peer is shown in a receive: %+v", s.UnansweredClear)
		}
	})
}

// TestCancelledReceiveOfADuplicate checks the same for a receive that its caller has cancelled.
func TestCancelledReceiveOfADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newDeployedPeer(t)
		defer p.close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.engine.Recv(ctx, 1, make([]byte, 4), mpe.Options{})
			ended <- err
		}()
		p.gets(request, sendCall, nil)
		p.sent(cleared)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		send, err := p.engine.Isend(1, words(1, 1), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(110 * time.Millisecond)
		p.sent(request)
		p.gets(cleared, recvCall, nil)
		time.Sleep(113 * time.Millisecond)
		p.gets(cleared, recvCall, nil)
		p.sent(data)
		p.gets(ack, recvCall, nil)
		if _, err := send.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Its message, if it ever arrives, is a new one.
		r, err := p.engine.Irecv(1, make([]byte, 4), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.gets(request, sendCall, nil)
		p.gets(data, sendCall, words(1, 2))
		p.sent(cleared, ack)
		if _, err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUnexpectedDuplicateIsForgotten checks that an unexpected duplicate is dropped when the peer has
// received a message since.
func TestUnexpectedDuplicateIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newDeployedPeer(t)
		defer p.close()
		p.gets(request, sendCall, nil)
		time.Sleep(time.Millisecond)
		send, err := p.engine.Isend(1, words(1, 1), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.gets(cleared, recvCall, nil)
		p.gets(ack, recvCall, nil)
		p.sent(request, data)
		if _, err := send.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := p.engine.Snapshot().Peers[0]; s.Deferred != nil || s.Events[state.EventRequestWasDuplicate] != 1 {
			t.Errorf("%+v", s)
		}
		if _, err := p.engine.Irecv(1, make([]byte, 4), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		p.sent()
	})
}
