package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// SettleTime is the time for which a ping continues after its caller has disconnected: longer than the 3.3 s
// within which a deployed node retransmits a packet. Ending earlier could wedge an FPGA in the middle of an
// operation, and the echo would arrive in the next receive. When the daemon stops, the time is half of
// closeTime.
const SettleTime = 4 * time.Second

// maxPending limits the messages without an echo that are remembered per pair of ranks.
const maxPending = 16

// pinger serializes the pings of one pair of ranks.
type pinger struct {
	busy chan struct{} // holds a token while a ping runs
	// wanted is sent to by a waiting ping. A ping whose caller is gone receives from it, and ends.
	wanted chan struct{}
	// pending are messages whose echo has not arrived. It may still arrive, and must not be mistaken for the
	// echo of a later message.
	pending []fingerprint
}

// fingerprint identifies the message of a ping.
type fingerprint struct {
	words uint32
	sum   uint64
}

var fingerprintSeed = maphash.MakeSeed()

func fingerprintOf(words uint32, b []byte) fingerprint {
	return fingerprint{words, maphash.Bytes(fingerprintSeed, b)}
}

// pingers holds the pinger of each pair of ranks.
type pingers struct {
	mu    sync.Mutex
	pairs map[[2]int]*pinger
}

// acquire returns the pair's pinger once no other ping uses it.
func (ps *pingers) acquire(ctx context.Context, from, to int) (*pinger, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ps.mu.Lock()
	if ps.pairs == nil {
		ps.pairs = make(map[[2]int]*pinger)
	}
	p := ps.pairs[[2]int{from, to}]
	if p == nil {
		p = &pinger{busy: make(chan struct{}, 1), wanted: make(chan struct{})}
		ps.pairs[[2]int{from, to}] = p
	}
	ps.mu.Unlock()
	for {
		select {
		case p.busy <- struct{}{}:
			return p, nil
		case p.wanted <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("another ping from rank %d to rank %d is in progress: %w", from, to,
				context.Cause(ctx))
		}
	}
}

func (p *pinger) release() { <-p.busy }

// errSuperseded ends a ping whose caller is gone when another ping waits.
var errSuperseded = Errorf(Canceled, "superseded by another ping")

// carryOn returns the context of a ping. It ends with the caller's timeout. After the caller has disconnected,
// it ends when the ping is complete, another ping waits, or SettleTime has passed.
func (p *pinger) carryOn(caller context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, func() {
		cause := context.Cause(caller)
		limit := SettleTime
		switch KindOf(cause) {
		case Timeout:
			cancel(cause)
			return
		case Closed:
			limit = closeTime / 2
		}
		over := time.NewTimer(limit)
		defer over.Stop()
		select {
		case <-over.C:
			cancel(cause)
		case <-p.wanted:
			cancel(errSuperseded)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// exchange is the transfer of a message to a peer and back.
type exchange struct {
	port Port
	peer int
	data []byte
	opts mpe.Options

	// sent is closed when the send is complete; out or sendErr is set before.
	sent    chan struct{}
	out     mpe.Status
	sendErr error

	// echo is the received message, and back its status. late counts other messages that arrived before it.
	echo []byte
	back mpe.Status
	late int
	err  error
}

// exchange sends one message and receives its echo.
func (p *pinger) exchange(ctx context.Context, port Port, peer int, data []byte, datatype protocol.Datatype) *exchange {
	x := &exchange{port: port, peer: peer, data: data, opts: mpe.Options{Datatype: datatype}, sent: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The receive is posted at the same time as the send: it matches an FPGA's answer, and completes an earlier
	// send of an FPGA to us.
	received := make(chan struct{})
	go func() {
		x.err = p.receive(ctx, x)
		close(received)
	}()
	x.out, x.sendErr = port.Send(ctx, peer, data, x.opts)
	if x.sendErr != nil {
		cancel(context.Canceled)
	}
	close(x.sent)
	<-received
	if x.sendErr != nil || x.err != nil || !slices.Equal(x.echo, data) {
		p.remember(fingerprintOf(uint32(len(data)/protocol.WordLen), data))
	}
	x.err = x.explain()
	return x
}

// receive receives the echo, and skips echoes of earlier messages.
func (p *pinger) receive(ctx context.Context, x *exchange) error {
	ours := fingerprintOf(uint32(len(x.data)/protocol.WordLen), x.data)
	words := ours.words
	for _, earlier := range p.pending {
		words = max(words, earlier.words)
	}
	buf := make([]byte, int(words)*protocol.WordLen)
	for {
		var err error
		x.back, err = x.port.Recv(ctx, x.peer, buf, mpe.Options{AnyDatatype: true})
		if err != nil && !errors.Is(err, handshake.ErrTruncated) {
			return err
		}
		x.echo = buf[:min(len(buf), int(x.back.Words)*protocol.WordLen)]
		found := fingerprintOf(x.back.Words, x.echo)
		if i := slices.Index(p.pending, found); i >= 0 && found != ours {
			p.pending = p.pending[i+1:]
		} else if !x.precedes() {
			return err
		}
		x.late++
	}
}

// precedes reports whether the received message was announced before the peer cleared ours. Then it is no echo
// of ours, whatever its content: an earlier daemon may have caused it.
func (x *exchange) precedes() bool {
	<-x.sent
	request := x.back.Phases.Request
	return request > 0 && request < x.out.Phases.Clear
}

func (p *pinger) remember(f fingerprint) {
	if len(p.pending) == maxPending {
		p.pending = p.pending[1:]
	}
	p.pending = append(p.pending, f)
}

// explain adds the state of the peer to the error of an exchange.
func (x *exchange) explain() error {
	err := cmp.Or(x.sendErr, x.err)
	wait, ok := errors.AsType[*mpe.WaitError](err)
	if !ok {
		return err
	}
	var state string
	switch {
	case x.sendErr == nil && wait.State == handshake.WaitRequest:
		state = fmt.Sprintf("rank %d has the message, but has not sent SEND_REQUEST for its echo; the next ping "+
			"skips a late echo", x.peer)
	case x.sendErr == nil:
		state = fmt.Sprintf("rank %d has the message and is sending its echo; the next ping skips that echo", x.peer)
	case wait.InTransfer:
		state = fmt.Sprintf("rank %d may have the message; the next ping waits for the transfer, and skips the echo",
			x.peer)
	case KindOf(err) == Timeout:
		state = fmt.Sprintf("rank %d is not receiving; restart the role of an FPGA that was interrupted in the "+
			"middle of a message", x.peer)
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, state)
}
