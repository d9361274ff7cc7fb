package standin

import (
	"context"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// inboxSize is the number of datagrams buffered in memory. Further datagrams wait in the socket's receive buffer. When
// that is full, the system drops datagrams and counts them.
const inboxSize = 64

// rxDatagram is a received datagram waiting to be delivered to the simulation.
type rxDatagram struct {
	rank  int
	port  uint16
	bytes []byte // empty if the datagram is longer than cosim.MaxDatagram
}

// inbox receives the datagrams of a wire.
type inbox struct {
	wire        Wire
	ready, free chan *rxDatagram
}

func newInbox(w Wire) *inbox {
	b := &inbox{wire: w, ready: make(chan *rxDatagram, inboxSize), free: make(chan *rxDatagram, inboxSize)}
	for range inboxSize {
		b.free <- &rxDatagram{bytes: make([]byte, 0, cosim.MaxDatagram)}
	}
	return b
}

// readLoop reads from the wire until an error occurs, or until ctx is done and the wire is closed. It returns the
// reason.
func (b *inbox) readLoop(ctx context.Context) error {
	batch := make([]mpe.RxPacket, inboxSize)
	for {
		n, err := b.wire.Recv(batch)
		if err != nil {
			return err
		}
		for i := range batch[:n] {
			if err := b.enqueue(ctx, &batch[i]); err != nil {
				return err
			}
		}
	}
}

// enqueue queues the datagrams in a packet.
func (b *inbox) enqueue(ctx context.Context, packet *mpe.RxPacket) error {
	for bytes := packet.Bytes; ; {
		var datagram *rxDatagram
		select {
		case datagram = <-b.free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		one := bytes
		if packet.DatagramLen > 0 {
			one = bytes[:min(packet.DatagramLen, len(bytes))]
		}
		datagram.rank, datagram.port, datagram.bytes = packet.Peer, packet.SourceAddr.Port(), datagram.bytes[:0]
		if packet.Kind == mpe.RxDatagram && len(one)+len(packet.Tail) <= cosim.MaxDatagram {
			datagram.bytes = append(append(datagram.bytes, one...), packet.Tail...)
		}
		b.ready <- datagram
		if bytes = bytes[len(one):]; len(bytes) == 0 {
			return nil
		}
	}
}

// datagramExchange exchanges datagrams between a simulated MPE and the network.
type datagramExchange struct {
	k             *rtlKernel
	inbox         *inbox
	network       *cosim.Network // under k.mu
	log           *zap.Logger
	lastRefusal   *cosim.FaultError // the last logged one
	lastSendError string            // text of the last logged send error

	simulator *simulator
	tcp       *connections // nil before the first step and without TCP streams
	ports     uint32       // TCP ports opened by the role
}

// serve runs a simulator and exchanges its datagrams.
func (d *datagramExchange) serve(ctx context.Context, s *simulator) error {
	s.beforeStep, s.afterStep = d.beforeStep, d.afterStep
	d.simulator = s
	defer func() {
		if d.tcp != nil {
			d.tcp.close()
		}
	}()
	return s.serve(ctx)
}

// beforeStep delivers received datagrams to the role until its FIFO is full.
func (d *datagramExchange) beforeStep(context.Context) error {
	d.deliverTCP()
	for range inboxSize {
		d.k.mu.Lock()
		room := d.network.HasSpace()
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

func (d *datagramExchange) deliver(datagram *rxDatagram) {
	gram := cosim.Datagram{Rank: datagram.rank, Port: datagram.port, Bytes: datagram.bytes}
	d.k.mu.Lock()
	taken := d.network.Deliver(gram)
	d.k.mu.Unlock()
	if taken {
		d.k.counters.succeeded.Add(1)
		d.inbox.wire.Record(datagram.rank, false, datagram.bytes)
	}
}

// afterStep sends the role's datagrams. Datagrams rejected by the system are lost.
func (d *datagramExchange) afterStep() {
	for _, gram := range d.network.Outgoing() {
		d.inbox.wire.Record(gram.Rank, true, gram.Bytes)
		if err := d.inbox.wire.SendDatagram(gram.Rank, gram.Bytes); err != nil && err.Error() != d.lastSendError {
			d.lastSendError = err.Error()
			d.k.counters.errors.Add(1)
			d.log.Warn("datagram of the role not sent", zap.Error(err))
		}
	}
	if d.tcp != nil {
		d.tcp.send(d.network.OutgoingTCP())
	}
	if r := d.network.LastRefusal(); r != nil && (d.lastRefusal == nil || r.Problem != d.lastRefusal.Problem) {
		d.lastRefusal = r
		d.k.counters.errors.Add(1)
		d.log.Warn("data of the role dropped", zap.String("signal", r.Signal), zap.Uint64("cycle", r.Cycle),
			zap.String("problem", r.Problem))
	}
}
