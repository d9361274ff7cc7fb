package transporttest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Timeout is the maximum time that a test waits for a packet.
const Timeout = 10 * time.Second

// End receives all packets that arrive at a transport.
type End struct {
	mpe.Transport
	RxPackets chan mpe.RxPacket
	// gonePeers receives the peers of mpe.RxPeerDied and mpe.RxPeerClosed, separately from other packets because they
	// arrive at an unpredictable time.
	gonePeers chan int
}

// Start returns an End that receives packets from tr and copies their Bytes. At the end of the test, it closes
// tr and checks the error of Recv.
func Start(t testing.TB, tr mpe.Transport) *End {
	t.Helper()
	e := &End{tr, make(chan mpe.RxPacket, 1<<14), make(chan int, 1<<10)}
	ended := make(chan error, 1)
	go func() { ended <- e.receive() }()
	t.Cleanup(func() {
		e.Close()
		if err := <-ended; !errors.Is(err, mpe.ErrTransportClosed) {
			t.Errorf("Recv of %v ended with %v", tr.LocalAddr(), err)
		}
	})
	return e
}

func (e *End) receive() error {
	batch := make([]mpe.RxPacket, 16)
	for {
		n, err := e.Recv(batch)
		if err != nil {
			return err
		}
		if n < 1 || n > len(batch) {
			return errors.New("nothing was filled in by Recv")
		}
		for _, packet := range batch[:n] {
			if packet.Kind == mpe.RxPeerDied || packet.Kind == mpe.RxPeerClosed {
				e.gonePeers <- packet.Peer
				continue
			}
			packet.Bytes = bytes.Clone(packet.Bytes)
			e.RxPackets <- packet
		}
	}
}

// Next returns the next packet. It fails the test if none arrives within Timeout.
func (e *End) Next(t testing.TB) mpe.RxPacket {
	t.Helper()
	a, ok := e.nextWithin(Timeout)
	if !ok {
		t.Fatalf("nothing arrived at %v", e.LocalAddr())
	}
	return a
}

func (e *End) nextWithin(d time.Duration) (mpe.RxPacket, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case a := <-e.RxPackets:
		return a, true
	case <-timer.C:
		return mpe.RxPacket{}, false
	}
}

// WaitGone waits for the report that the process of a peer is gone.
func (e *End) WaitGone(t testing.TB, peer int) {
	t.Helper()
	select {
	case p := <-e.gonePeers:
		if p != peer {
			t.Fatalf("at %v rank %d is gone, not rank %d", e.LocalAddr(), p, peer)
		}
	case <-time.After(Timeout):
		t.Fatalf("at %v nothing shows that rank %d is gone", e.LocalAddr(), peer)
	}
}

// WaitConnected waits for the connection to a peer, if the transport has connections.
func (e *End) WaitConnected(t testing.TB, peer int) {
	t.Helper()
	if !e.Reliable() {
		return
	}
	if a := e.Next(t); a.Kind != mpe.RxConnected || a.Peer != peer {
		t.Fatalf("%+v arrived at %v before the connection to rank %d", a, e.LocalAddr(), peer)
	}
}
