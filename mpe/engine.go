package mpe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Peer configures one of the ranks that an engine talks to.
type Peer struct {
	// Handshake is how to talk to it. Local and Remote are filled in.
	Handshake handshake.Config
	// Transport carries the packets; several peers may share one.
	Transport Transport
	// Kind and Address are for messages to people.
	Kind, Address string
}

// Config configures an engine.
type Config struct {
	// Rank is the local rank.
	Rank int
	// Peers has an entry per rank of the cluster, in rank order; the local
	// rank's own is ignored.
	Peers []Peer
	// TrustSource accepts packets from addresses that the rank map does not
	// know, by the rank that their header names. A stand-in does so when its
	// drop_unknown_ip habit is switched off.
	TrustSource bool
	// Observer is told of everything worth counting or logging; may be nil.
	Observer Observer
}

// Engine is one rank's message passing engine.
type Engine struct {
	rank  int
	cfg   Config
	epoch time.Time

	mu     sync.Mutex
	peers  []*peer
	acts   []handshake.Action
	nextID handshake.ID
	timer  *time.Timer
	wakeAt handshake.Instant // what timer is set to, if wakeOn
	wakeOn bool
	drops  [handshake.NumReasons]uint64 // from addresses that are no peer's
	state  runState
	idle   chan struct{} // closed when draining and nothing is under way

	transports []Transport
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
}

type runState uint8

const (
	running runState = iota
	draining
	closed
)

// New starts the engine of a rank. The engine owns the peers' transports from
// here on, and closes them in Close.
func New(cfg Config) (*Engine, error) {
	if cfg.Rank < 0 || cfg.Rank >= len(cfg.Peers) {
		return nil, fmt.Errorf("rank %d is not one of the %d ranks of the cluster", cfg.Rank, len(cfg.Peers))
	}
	if cfg.Observer == nil {
		cfg.Observer = nopObserver{}
	}
	e := &Engine{rank: cfg.Rank, cfg: cfg, epoch: time.Now(), peers: make([]*peer, len(cfg.Peers)), stop: make(chan struct{})}
	seen := map[Transport]bool{}
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		if pc.Transport == nil {
			return nil, fmt.Errorf("rank %d: peer %d has no transport", cfg.Rank, rank)
		}
		pc.Handshake.Local, pc.Handshake.Remote = uint32(cfg.Rank), uint32(rank)
		pc.Handshake.Reliable = pc.Transport.Reliable()
		e.peers[rank] = newPeer(rank, pc)
		if !seen[pc.Transport] {
			seen[pc.Transport] = true
			e.transports = append(e.transports, pc.Transport)
		}
	}
	e.timer = time.AfterFunc(time.Hour, e.tick)
	e.timer.Stop()
	for _, tr := range e.transports {
		e.goroutines.Go(func() { e.read(tr) })
	}
	return e, nil
}

// Rank returns the local rank.
func (e *Engine) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *Engine) Size() int { return len(e.peers) }

// batchSize is how many packets are taken from a transport at a time: enough to
// spread the cost of the lock and the system call, few enough to stay in cache.
const batchSize = 64

// read feeds one transport's packets to the peers until it is closed.
func (e *Engine) read(tr Transport) {
	batch := make([]Arrival, batchSize)
	for {
		n, err := tr.Recv(batch)
		if n > 0 {
			e.arrived(tr, batch[:n])
		}
		if errors.Is(err, ErrTransportClosed) {
			return
		}
		if err != nil {
			e.cfg.Observer.TransportError(e.rank, err)
			select { // a network that is out of order must not cost a core
			case <-time.After(recvRetry):
			case <-e.stop:
			}
		}
	}
}

// recvRetry is how long to leave a transport alone that failed to receive.
const recvRetry = 10 * time.Millisecond

// arrived takes a batch of packets.
func (e *Engine) arrived(tr Transport, batch []Arrival) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == closed {
		return
	}
	for i := range batch {
		e.arrival(tr, &batch[i])
	}
	e.settle()
}

// arrival feeds one packet to its peer's state machine and acts on the answer.
func (e *Engine) arrival(tr Transport, a *Arrival) {
	p := e.source(a)
	if p == nil {
		e.drops[handshake.ReasonUnknownAddress]++
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, a, handshake.Action{Reason: handshake.ReasonUnknownAddress})
		return
	}
	if p.tr != tr {
		// A peer is spoken to over one transport; what comes over
		// another one is not from it.
		e.dropped(p, a, handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonStray})
		return
	}
	now := e.now()
	switch a.Kind {
	case ArrivedDatagram:
		p.received(a.Bytes)
		e.acts = p.pair.Datagram(now, a.Bytes, e.acts[:0])
	case ArrivedHeader:
		p.received(a.Bytes)
		e.acts = p.pair.Header(now, a.Bytes, e.acts[:0])
	case ArrivedPayload:
		p.bytesIn += uint64(len(a.Bytes))
		e.acts = p.pair.Payload(now, a.Bytes, e.acts[:0])
	case ArrivedConnected:
		p.behind = nil // it was for the old connection
		e.acts = p.pair.Reconnected(now, e.acts[:0])
	case ArrivedTruncated:
		p.received(a.Bytes)
		e.acts = append(e.acts[:0], handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonLength})
	case ArrivedBroken:
		e.acts = append(e.acts[:0], handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonStream})
	}
	e.act(p, a)
}

// source finds the peer that a packet came from.
func (e *Engine) source(a *Arrival) *peer {
	rank := a.Peer
	if rank == UnknownPeer && e.cfg.TrustSource && a.Kind == ArrivedDatagram {
		if h, defect := protocol.CloudFPGA.Parse(a.Bytes); defect.OK() && int64(h.Src) < int64(len(e.peers)) {
			rank = int(h.Src)
		}
	}
	if rank < 0 || rank >= len(e.peers) {
		return nil
	}
	return e.peers[rank]
}

// act carries out the actions in e.acts, and those that they bring about.
func (e *Engine) act(p *peer, a *Arrival) {
	for i := 0; i < len(e.acts); i++ {
		switch act := e.acts[i]; act.Kind {
		case handshake.Transmit:
			e.transmit(p, act)
		case handshake.TransmitData:
			e.transmitData(p, act)
		case handshake.Copy:
			p.recving.store(act)
		case handshake.SendDone:
			e.sendDone(p, act)
		case handshake.RecvDone:
			e.recvDone(p, act)
		case handshake.Drop:
			e.dropped(p, a, act)
		case handshake.Note:
			p.events[act.Event]++
			e.cfg.Observer.Noted(e.rank, p.rank, act)
		}
	}
	clear(e.acts) // lets go of payload and requests
	e.acts = e.acts[:0]
}

func (e *Engine) dropped(p *peer, a *Arrival, act handshake.Action) {
	p.drops[act.Reason]++
	e.cfg.Observer.Dropped(e.rank, p.rank, a, act)
}

// tick lets every pair act on its time-outs.
func (e *Engine) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakeOn = false
	if e.state == closed {
		return
	}
	now := e.now()
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		if at, ok := p.pair.Deadline(); ok && at <= now {
			e.acts = p.pair.Tick(now, e.acts[:0])
			e.act(p, nil)
		}
	}
	e.settle()
}

// settle sets the timer to the earliest deadline, and tells a drain when
// nothing is left to wait for. It ends every event.
func (e *Engine) settle() {
	at, ok := handshake.Instant(0), false
	busy := false
	for _, p := range e.peers {
		if p == nil {
			continue
		}
		busy = busy || p.busy()
		if t, on := p.pair.Deadline(); on && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if !busy && e.state == draining && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
	switch {
	case !ok:
		if e.wakeOn {
			e.timer.Stop()
			e.wakeOn = false
		}
	case !e.wakeOn || at < e.wakeAt:
		// A timer that runs off early finds nothing to do and is set
		// again, which costs less than moving it at every packet.
		e.timer.Reset(max(at-e.now(), 0))
		e.wakeAt, e.wakeOn = at, true
	}
}

// Close ends the engine. No new operation is accepted; handshakes that are
// under way are given until ctx is done to end well, then everything still
// posted fails with ErrClosed and the transports are closed. It returns ctx's
// error if something had to be cut off.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.state == closed {
		e.mu.Unlock()
		return nil
	}
	e.state = draining
	for _, p := range e.peers {
		if p != nil {
			e.failQueued(p, ErrClosed)
		}
	}
	idle := make(chan struct{})
	e.idle = idle
	e.settle()
	e.mu.Unlock()

	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		select {
		case <-idle:
		default:
			err = context.Cause(ctx)
		}
	}

	e.mu.Lock()
	e.state, e.idle = closed, nil
	close(e.stop)
	e.timer.Stop()
	for _, p := range e.peers {
		if p != nil {
			e.failActive(p, ErrClosed)
		}
	}
	e.mu.Unlock()
	for _, tr := range e.transports {
		if cerr := tr.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	e.goroutines.Wait()
	return err
}
