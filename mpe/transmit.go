package mpe

import (
	"bytes"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// longWrite is the payload in bytes from which a message to a stream is written
// by a goroutine of its own. A stream pushes back when its peer does not read;
// two ranks that write long messages to each other would wait for each other
// for ever if they did not read meanwhile.
const longWrite = 64 << 10

// outgoing is a packet that waits behind a long write to the same peer.
type outgoing struct {
	header  [protocol.HeaderLen]byte
	payload []byte
	// data is the send whose DATA it is, or 0 if it is another packet.
	data handshake.ID
}

// transmit sends a handshake packet. A network that refuses it is treated like
// one that loses it: the handshake repeats it, and the error is kept to explain
// a time-out.
func (e *Engine) transmit(p *peer, act handshake.Action) {
	p.cfg.Handshake.Profile.Put(p.header[:], act.Header)
	p.sent(act.Header.Type, protocol.HeaderLen)
	if p.writing {
		p.behind = append(p.behind, outgoing{header: p.header})
		return
	}
	p.sendFailed(e, p.tr.SendHeader(p.rank, p.header[:]))
}

// slow reports whether a message is written by a goroutine of its own: a long one
// to a stream, and one that is spread over time.
func (p *peer) slow(bytes int) bool {
	if p.tr.Reliable() {
		return bytes >= longWrite
	}
	return p.paced != nil && p.paced.Paced(p.rank, bytes)
}

// transmitData sends a DATA message. Towards a datagram socket, which does not
// push back, it does so at once.
func (e *Engine) transmitData(p *peer, act handshake.Action) {
	payload := p.sending.buf
	p.cfg.Handshake.Profile.Put(p.header[:], act.Header)
	p.sentData(len(payload))
	if !p.writing && !p.slow(len(payload)) {
		e.dataSent(p, act.ID, p.tr.SendData(p.rank, p.header[:], payload, p.cfg.Handshake.Shape))
		return
	}
	// The payload is the caller's again as soon as the request ends, which
	// an error can bring about in the middle of the write: so a copy.
	p.behind = append(p.behind, outgoing{header: p.header, payload: bytes.Clone(payload), data: act.ID})
	if !p.writing {
		p.writing = true
		e.goroutines.Go(func() { e.write(p) })
	}
}

// dataSent notes that the network has taken a DATA message, or has refused it. The wait
// for its ACK begins, unless the send has ended meanwhile.
func (e *Engine) dataSent(p *peer, id handshake.ID, err error) {
	p.sendFailed(e, err)
	e.at = e.now()
	if p.sending != nil && p.sending.id == id {
		e.pair(p).DataSent(e.at)
	}
}

// write sends what waits for a peer, without the lock, until nothing is left.
func (e *Engine) write(p *peer) {
	e.lock()
	defer e.unlock()
	for e.state != closed && len(p.behind) > 0 {
		out := p.behind[0]
		p.behind = p.behind[1:]
		e.unlock()
		var err error
		if out.data != 0 {
			err = p.tr.SendData(p.rank, out.header[:], out.payload, p.cfg.Handshake.Shape)
		} else {
			err = p.tr.SendHeader(p.rank, out.header[:])
		}
		e.lock()
		if out.data != 0 {
			e.dataSent(p, out.data, err)
		} else {
			p.sendFailed(e, err)
		}
	}
	p.writing, p.behind = false, nil
}

// now is the engine's clock: time since it started.
func (e *Engine) now() handshake.Instant { return time.Since(e.epoch) }

// lock takes the lock for an event.
func (e *Engine) lock() {
	e.mu.Lock()
	e.at = e.now()
}
