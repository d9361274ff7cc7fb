package mpe

import (
	"bytes"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// longWrite is the payload in bytes from which a message to a stream is written
// by a goroutine of its own. A stream pushes back when its peer does not read;
// two ranks that write long messages to each other would wait for each other
// forever if they did not read meanwhile.
const longWrite = 64 << 10

// streamWriter sends the packets of a handshake in order, long messages in a goroutine.
type streamWriter struct {
	paced   PacedTransport // nil if no message is spread over time
	writing bool           // a goroutine is writing to the peer
	behind  []outgoing     // what waits for it
}

// outgoing is a packet that waits behind a long write to the same peer.
type outgoing struct {
	header  [protocol.HeaderLen]byte
	payload []byte
	// data is the send whose DATA it is, or 0 if it is another packet.
	data handshake.ID
}

// sendHeader implements driver.
func (e *Engine) sendHeader(l *handshakeLink, header []byte) error {
	if w := &l.writer; w.writing {
		w.behind = append(w.behind, outgoing{header: [protocol.HeaderLen]byte(header)})
		return nil
	}
	return l.p.tr.SendHeader(l.p.rank, header)
}

// slow reports whether a message is written by a goroutine of its own: a long one
// to a stream, and one that is spread over time.
func (l *handshakeLink) slow(bytes int) bool {
	if l.p.tr.Reliable() {
		return bytes >= longWrite
	}
	return l.writer.paced != nil && l.writer.paced.Paced(l.p.rank, bytes)
}

// sendData implements driver. A datagram socket does not push back, so most messages are
// sent at once.
func (e *Engine) sendData(l *handshakeLink, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool, err error) {
	p, w := l.p, &l.writer
	if !w.writing && !l.slow(len(payload)) {
		err = p.tr.SendData(p.rank, header, payload, p.cfg.Handshake.Shape)
		return e.now(), true, err
	}
	// The payload is the caller's again as soon as the request ends, which
	// an error can bring about in the middle of the write: so a copy.
	w.behind = append(w.behind, outgoing{header: [protocol.HeaderLen]byte(header), payload: bytes.Clone(payload), data: id})
	if !w.writing {
		w.writing = true
		e.goroutines.Go(func() { e.write(l) })
	}
	return 0, false, nil
}

// connected implements driver.
func (e *Engine) connected(l *handshakeLink) { l.writer.behind = nil }

// write sends what waits for the peer, without the lock, until nothing is left.
func (e *Engine) write(l *handshakeLink) {
	p, w := l.p, &l.writer
	e.lock()
	defer e.unlock()
	for e.state != closed && len(w.behind) > 0 {
		out := w.behind[0]
		w.behind = w.behind[1:]
		e.unlock()
		var err error
		if out.data != 0 {
			err = p.tr.SendData(p.rank, out.header[:], out.payload, p.cfg.Handshake.Shape)
		} else {
			err = p.tr.SendHeader(p.rank, out.header[:])
		}
		e.lock()
		if out.data != 0 {
			l.dataSent(e.at, out.data, err)
		} else {
			p.sendResult(err)
		}
	}
	w.writing, w.behind = false, nil
}
