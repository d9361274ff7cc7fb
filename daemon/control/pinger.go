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

// PingLinger is the time for which a ping continues after its caller has disconnected. It exceeds the 3.3 s within
// which a deployed node retransmits a packet. A ping that ended earlier could wedge an FPGA in the middle of an
// operation, and the next receive would get the echo. When the daemon stops, the ping continues for half of
// shutdownTimeout.
const PingLinger = 4 * time.Second

// maxPending is the maximum number of messages that a pinger remembers because their echo has not arrived.
const maxPending = 16

// pinger runs the pings between a pair of ranks, one at a time.
type pinger struct {
	busy chan struct{} // holds a token while a ping runs
	// A ping that waits for another ping sends on nextWaiting; a ping whose caller has disconnected receives from it
	// and exits.
	nextWaiting chan struct{}
	// pending identifies messages whose echo has not arrived. A late echo must not be mistaken for the echo of a later
	// message.
	pending []fingerprint
}

// fingerprint identifies a message sent by a ping.
type fingerprint struct {
	words uint32
	sum   uint64
}

var fingerprintSeed = maphash.MakeSeed()

func fingerprintOf(words uint32, b []byte) fingerprint {
	return fingerprint{words, maphash.Bytes(fingerprintSeed, b)}
}

// pingers contains one pinger for each pair of ranks.
type pingers struct {
	mu    sync.Mutex
	pairs map[[2]int]*pinger
}

// acquire waits until no other ping uses the pinger of a pair of ranks, and returns that pinger.
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
		p = &pinger{busy: make(chan struct{}, 1), nextWaiting: make(chan struct{})}
		ps.pairs[[2]int{from, to}] = p
	}
	ps.mu.Unlock()
	for {
		select {
		case p.busy <- struct{}{}:
			return p, nil
		case p.nextWaiting <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("another ping from rank %d to rank %d is in progress: %w", from, to,
				context.Cause(ctx))
		}
	}
}

func (p *pinger) release() { <-p.busy }

// errSuperseded is the error of a ping that continued after its caller had disconnected and ended because another ping
// was waiting.
var errSuperseded = Errorf(Canceled, "superseded by another ping")

// pingContext returns the context of a ping. It is cancelled when the caller's timeout expires. After the caller has
// disconnected, it is cancelled when the ping completes, another ping is waiting, or PingLinger has passed.
func (p *pinger) pingContext(caller context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(caller))
	stop := context.AfterFunc(caller, func() {
		cause := context.Cause(caller)
		limit := PingLinger
		switch KindOf(cause) {
		case Timeout:
			cancel(cause)
			return
		case Closed:
			limit = shutdownTimeout / 2
		}
		over := time.NewTimer(limit)
		defer over.Stop()
		select {
		case <-over.C:
			cancel(cause)
		case <-p.nextWaiting:
			cancel(errSuperseded)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// exchange describes the transfer of one message to a peer and of its echo back.
type exchange struct {
	port Port
	peer int
	data []byte
	opts mpe.Options

	// sendDone is closed when the send has completed. sendStatus and sendErr are valid from then on.
	sendDone   chan struct{}
	sendStatus mpe.Status
	sendErr    error

	// echo is the received message, and echoStatus its status. skipped is the number of other messages received before
	// it.
	echo       []byte
	echoStatus mpe.Status
	skipped    int
	err        error
}

// exchange sends one message and receives its echo.
func (p *pinger) exchange(ctx context.Context, port Port, peer int, data []byte, datatype protocol.Datatype) *exchange {
	x := &exchange{port: port, peer: peer, data: data, opts: mpe.Options{Datatype: datatype},
		sendDone: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Post the receive together with the send: it matches the answer of an FPGA, and also completes a send that an FPGA
	// started earlier.
	received := make(chan struct{})
	go func() {
		x.err = p.receive(ctx, x)
		close(received)
	}()
	x.sendStatus, x.sendErr = port.Send(ctx, peer, data, x.opts)
	if x.sendErr != nil {
		cancel(context.Canceled)
	}
	close(x.sendDone)
	<-received
	if x.sendErr != nil || x.err != nil || !slices.Equal(x.echo, data) {
		p.addPending(fingerprintOf(uint32(len(data)/protocol.WordLen), data))
	}
	x.err = x.describeError()
	return x
}

// receive receives the echo, skipping the echoes of earlier messages.
func (p *pinger) receive(ctx context.Context, x *exchange) error {
	ours := fingerprintOf(uint32(len(x.data)/protocol.WordLen), x.data)
	words := ours.words
	for _, earlier := range p.pending {
		words = max(words, earlier.words)
	}
	buf := make([]byte, int(words)*protocol.WordLen)
	for {
		var err error
		x.echoStatus, err = x.port.Recv(ctx, x.peer, buf, mpe.Options{AnyDatatype: true})
		if err != nil && !errors.Is(err, handshake.ErrTruncated) {
			return err
		}
		x.echo = buf[:min(len(buf), int(x.echoStatus.Words)*protocol.WordLen)]
		found := fingerprintOf(x.echoStatus.Words, x.echo)
		if i := slices.Index(p.pending, found); i >= 0 && found != ours {
			p.pending = p.pending[i+1:]
		} else if !x.predatesSend() {
			return err
		}
		x.skipped++
	}
}

// predatesSend reports whether the peer announced the received message before it granted our send. Such a message
// cannot be our echo, even if its content is equal, because the peer may have sent it in reply to an earlier daemon.
func (x *exchange) predatesSend() bool {
	<-x.sendDone
	request := x.echoStatus.Phases.Request
	return request > 0 && request < x.sendStatus.Phases.Clear
}

// addPending remembers a message whose echo may still come. At the limit it forgets the oldest one.
func (p *pinger) addPending(f fingerprint) {
	if len(p.pending) == maxPending {
		p.pending = p.pending[1:]
	}
	p.pending = append(p.pending, f)
}

// describeError adds the state of the peer to the error of an exchange.
func (x *exchange) describeError() error {
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
