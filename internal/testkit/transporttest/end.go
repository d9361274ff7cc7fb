package transporttest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Patience is how long a test waits for what must come.
const Patience = 10 * time.Second

// End receives all that arrives at a transport.
type End struct {
	mpe.Transport
	Arrivals chan mpe.Arrival
}

// Start returns an End that receives from tr, whose Bytes it copies. At the end
// of the test it closes tr and checks that Recv ends as it should.
func Start(t testing.TB, tr mpe.Transport) *End {
	t.Helper()
	e := &End{tr, make(chan mpe.Arrival, 1<<14)}
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
	batch := make([]mpe.Arrival, 16)
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
			e.Arrivals <- a
		}
	}
}

// Next returns the next arrival.
func (e *End) Next(t testing.TB) mpe.Arrival {
	t.Helper()
	a, ok := e.within(Patience)
	if !ok {
		t.Fatalf("nothing arrived at %v", e.LocalAddr())
	}
	return a
}

func (e *End) within(d time.Duration) (mpe.Arrival, bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case a := <-e.Arrivals:
		return a, true
	case <-timer.C:
		return mpe.Arrival{}, false
	}
}

// WaitConnected waits for the connection to a peer, if there are connections.
func (e *End) WaitConnected(t testing.TB, peer int) {
	t.Helper()
	if !e.Reliable() {
		return
	}
	if a := e.Next(t); a.Kind != mpe.ArrivedConnected || a.Peer != peer {
		t.Fatalf("%+v arrived at %v before the connection to rank %d", a, e.LocalAddr(), peer)
	}
}
