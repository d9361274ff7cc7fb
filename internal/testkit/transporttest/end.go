package transporttest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Timeout is how long a test waits for what must arrive.
const Timeout = 10 * time.Second

// End receives all that arrives at a transport.
type End struct {
	mpe.Transport
	RxPackets chan mpe.RxPacket
}

// Start returns an End that receives from tr, whose Bytes it copies. At the end
// of the test it closes tr and checks that Recv ends as it should.
func Start(t testing.TB, tr mpe.Transport) *End {
	t.Helper()
	e := &End{tr, make(chan mpe.RxPacket, 1<<14)}
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
		for _, a := range batch[:n] {
			a.Bytes = bytes.Clone(a.Bytes)
			e.RxPackets <- a
		}
	}
}

// Next returns the next arrival.
func (e *End) Next(t testing.TB) mpe.RxPacket {
	t.Helper()
	a, ok := e.within(Timeout)
	if !ok {
		t.Fatalf("nothing arrived at %v", e.LocalAddr())
	}
	return a
}

func (e *End) within(d time.Duration) (mpe.RxPacket, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case a := <-e.RxPackets:
		return a, true
	case <-timer.C:
		return mpe.RxPacket{}, false
	}
}

// WaitConnected waits for the connection to a peer, if there are connections.
func (e *End) WaitConnected(t testing.TB, peer int) {
	t.Helper()
	if !e.Reliable() {
		return
	}
	if a := e.Next(t); a.Kind != mpe.RxConnected || a.Peer != peer {
		t.Fatalf("%+v arrived at %v before the connection to rank %d", a, e.LocalAddr(), peer)
	}
}
