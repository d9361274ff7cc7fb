package mpe

import (
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is what an engine keeps about one remote rank. The engine's lock guards
// it.
type peer struct {
	rank int
	cfg  Peer
	tr   Transport
	pair *handshake.Pair

	// sending and recving are handed to the pair; sendq and recvq wait
	// behind them in the order in which they were posted.
	sending, recving *Request
	sendq, recvq     queue
	// unclaimed holds messages whose receive was given up after the sender
	// had been cleared. They go to the next receives posted.
	unclaimed []*Request

	header     [protocol.HeaderLen]byte
	writing    bool       // a goroutine is writing to the peer
	behind     []outgoing // what waits for it
	sendErr    error      // the last error of the transport, until a send succeeds
	packetsOut [protocol.Error + 1]uint64
	packetsIn  uint64
	bytesIn    uint64
	bytesOut   uint64
	drops      [handshake.NumReasons]uint64
	events     [handshake.NumEvents]uint64
	sendsDone  uint64
	recvsDone  uint64
	failures   uint64
}

func newPeer(rank int, cfg Peer) *peer {
	return &peer{rank: rank, cfg: cfg, tr: cfg.Transport, pair: handshake.New(cfg.Handshake)}
}

// busy reports whether a handshake is under way that a drain should wait for. A
// receive that waits for a SEND_REQUEST, and a send that waits for
// CLEAR_TO_SEND, have not begun to move data and may wait for ever.
func (p *peer) busy() bool {
	s, _ := p.pair.SendWait()
	r, _ := p.pair.RecvWait()
	return s.State == handshake.WaitAck || r.State == handshake.WaitData || r.State == handshake.Receiving
}

func (p *peer) received(b []byte) {
	p.packetsIn++
	p.bytesIn += uint64(len(b))
}

func (p *peer) sent(t protocol.Type, bytes int) {
	p.packetsOut[t]++
	p.bytesOut += uint64(bytes)
}

func (p *peer) sendFailed(e *Engine, err error) {
	p.sendErr = err
	if err != nil {
		e.cfg.Observer.TransportError(e.rank, err)
	}
}

// queue is a first-in-first-out queue of requests.
type queue struct {
	items []*Request
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(r *Request) { q.items = append(q.items, r) }

func (q *queue) pop() *Request {
	if q.head == len(q.items) {
		return nil
	}
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 64 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return r
}

// remove takes r out, and reports whether it was there.
func (q *queue) remove(r *Request) bool {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i] == r {
			q.items = append(q.items[:i], q.items[i+1:]...)
			return true
		}
	}
	return false
}
