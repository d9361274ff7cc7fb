package relay

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/udp"
)

// datagrams holds the UDP sockets of a relay. The index of each socket is the rank that the socket represents.
type datagrams struct {
	*Relay
	conns   []*net.UDPConn
	delayed impair.Queue[datagram] // guarded by mu
}

// datagram is a delayed datagram.
type datagram struct {
	from, to int
	bytes    []byte
}

// listenDatagrams binds all sockets before it relays anything. After an error, the caller must close the returned set.
func listenDatagrams(relay *Relay) (socketSet, error) {
	d := &datagrams{Relay: relay}
	for rank := range relay.plan.Size() {
		conn, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp",
			relay.plan.relayAddrs.Addr(rank).String())
		if err != nil {
			return d, bindfault.New("udp", rank, relay.plan.relayAddrs, err)
		}
		d.conns = append(d.conns, conn.(*net.UDPConn))
		if _, err := udp.SetReceiveBuffer(conn.(*net.UDPConn), udp.DefaultReceiveBuffer); err != nil {
			return d, err
		}
	}
	for rank, conn := range d.conns {
		relay.tasks.Go(func() { d.readLoop(rank, conn) })
	}
	return d, nil
}

func (d *datagrams) close() {
	for _, conn := range d.conns {
		conn.Close()
	}
}

func (d *datagrams) socketDrops() (sum uint64) {
	for _, conn := range d.conns {
		if n, err := udp.SocketDrops(conn); err == nil { // otherwise the system does not report it
			sum += uint64(n)
		}
	}
	return sum
}

// readLoop relays the datagrams sent to rank to, until the socket is closed.
func (d *datagrams) readLoop(to int, conn *net.UDPConn) {
	b := make([]byte, 1<<16)
	for {
		n, source, err := conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // an error caused by an earlier send
			continue
		}
		from := d.plan.realAddrs.Resolve(source)
		if from == rankmap.NoRank || from == to {
			d.increment(&d.counts.unknownSource)
			continue
		}
		d.relay(from, to, b[:n])
	}
}

// relay applies the impairments to a datagram. It copies b before it alters or delays the datagram.
func (d *datagrams) relay(from, to int, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.sendDue(now) // before this datagram, even if their timer is late
	for _, delivery := range d.impairer.DecideDatagram(now.Sub(d.startTime), from, to, b) {
		altered := b
		if delivery.Flip >= 0 || delivery.After > 0 {
			altered = bytes.Clone(b)
			delivery.Apply(altered)
		}
		if delivery.After > 0 {
			d.delayed.Push(now.Add(delivery.After), datagram{from, to, altered})
			time.AfterFunc(delivery.After, d.sendDelayed)
			continue
		}
		d.send(datagram{from, to, altered})
	}
}

// sendDelayed sends the delayed datagrams that are due.
func (d *datagrams) sendDelayed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sendDue(time.Now())
}

// sendDue sends the delayed datagrams that are due. The caller holds mu.
func (d *datagrams) sendDue(now time.Time) {
	for x, ok := d.delayed.Pop(now); ok; x, ok = d.delayed.Pop(now) {
		d.send(x)
	}
}

// send sends a datagram. The caller holds mu, so that datagrams are sent in order of due time.
func (d *datagrams) send(x datagram) {
	if _, err := d.conns[x.from].WriteToUDPAddrPort(x.bytes, d.plan.realAddrs.Addr(x.to)); err != nil && !d.closed {
		d.counts.failed++
	}
}
