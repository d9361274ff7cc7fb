package standin

import (
	"context"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// arriving is the number of datagrams that can wait in memory. Further ones wait in the socket's receive
// buffer. When that is full, the system drops datagrams and counts them.
const arriving = 64

// arrived is a received datagram waiting to be delivered to the simulation.
type arrived struct {
	rank  int
	port  uint16
	bytes []byte // empty if the datagram is longer than cosim.MaxDatagram
}

// inbox receives the datagrams that arrive on a wire.
type inbox struct {
	wire        Wire
	ready, free chan *arrived
}

func newInbox(w Wire) *inbox {
	b := &inbox{wire: w, ready: make(chan *arrived, arriving), free: make(chan *arrived, arriving)}
	for range arriving {
		b.free <- &arrived{bytes: make([]byte, 0, cosim.MaxDatagram)}
	}
	return b
}

// run reads from the wire until ctx is done and the wire is closed, or until an error occurs, and returns the
// reason.
func (b *inbox) run(ctx context.Context) error {
	batch := make([]mpe.RxPacket, arriving)
	for {
		n, err := b.wire.Recv(batch)
		if err != nil {
			return err
		}
		for i := range batch[:n] {
			if err := b.take(ctx, &batch[i]); err != nil {
				return err
			}
		}
	}
}

// take queues a packet, which may contain several datagrams.
func (b *inbox) take(ctx context.Context, p *mpe.RxPacket) error {
	for bytes := p.Bytes; ; {
		var a *arrived
		select {
		case a = <-b.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		one := bytes
		if p.Each > 0 {
			one = bytes[:min(p.Each, len(bytes))]
		}
		a.rank, a.port, a.bytes = p.Peer, p.From.Port(), a.bytes[:0]
		if p.Kind == mpe.RxDatagram && len(one)+len(p.Rest) <= cosim.MaxDatagram {
			a.bytes = append(append(a.bytes, one...), p.Rest...)
		}
		b.ready <- a
		if bytes = bytes[len(one):]; len(bytes) == 0 {
			return nil
		}
	}
}

// datagrams exchanges datagrams between a simulated MPE and the network.
type datagrams struct {
	k       *rtlKernel
	inbox   *inbox
	network *cosim.Network // under k.mu
	log     *zap.Logger
	refusal *cosim.FaultError // the last one that was logged
	failed  string            // the last send error that was logged

	simulator *simulator
	tcp       *connections // nil before the first step and without TCP streams
	ports     uint32       // TCP ports that the role has opened
}

// serve runs a simulator and exchanges its datagrams.
func (d *datagrams) serve(ctx context.Context, s *simulator) error {
	s.before, s.after = d.before, d.after
	d.simulator = s
	defer func() {
		if d.tcp != nil {
			d.tcp.close()
		}
	}()
	return s.serve(ctx)
}

// before delivers as many received datagrams to the role as fit.
func (d *datagrams) before(context.Context) error {
	d.beforeTCP()
	for range arriving {
		d.k.mu.Lock()
		room := d.network.Room()
		d.k.mu.Unlock()
		if !room {
			return nil
		}
		select {
		case a := <-d.inbox.ready:
			d.deliver(a)
			d.inbox.free <- a
		default:
			return nil
		}
	}
	return nil
}

func (d *datagrams) deliver(a *arrived) {
	gram := cosim.Datagram{Rank: a.rank, Port: a.port, Bytes: a.bytes}
	d.k.mu.Lock()
	taken := d.network.Deliver(gram)
	d.k.mu.Unlock()
	if taken {
		d.k.counters.succeeded.Add(1)
		d.inbox.wire.Record(a.rank, false, a.bytes)
	}
}

// after sends the role's datagrams. A datagram that the system does not accept is lost.
func (d *datagrams) after() {
	for _, gram := range d.network.Sent() {
		d.inbox.wire.Record(gram.Rank, true, gram.Bytes)
		if err := d.inbox.wire.SendDatagram(gram.Rank, gram.Bytes); err != nil && err.Error() != d.failed {
			d.failed = err.Error()
			d.k.counters.errors.Add(1)
			d.log.Warn("datagram of the role not sent", zap.Error(err))
		}
	}
	if d.tcp != nil {
		d.tcp.send(d.network.SentTCP())
	}
	if r := d.network.Refusal(); r != nil && (d.refusal == nil || r.Problem != d.refusal.Problem) {
		d.refusal = r
		d.k.counters.errors.Add(1)
		d.log.Warn("data of the role dropped", zap.String("signal", r.Signal), zap.Uint64("cycle", r.Cycle),
			zap.String("problem", r.Problem))
	}
}
