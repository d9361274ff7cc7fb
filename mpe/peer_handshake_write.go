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
	header  [protocol.HeaderLen]byte
	writing bool       // a goroutine is writing to the peer
	behind  []outgoing // what waits for it
}

// outgoing is a packet that waits behind a long write to the same peer.
type outgoing struct {
	header  [protocol.HeaderLen]byte
	payload []byte
	// data is the send whose DATA it is, or 0 if it is another packet.
	data handshake.ID
}

// transmit sends a handshake packet. A network that refuses it is treated like
// one that loses it: the handshake retransmits it, and the error is kept to explain
// a time-out.
func (l *handshakeLink) transmit(act handshake.Action) {
	p, w := l.p, &l.writer
	l.profile().Put(w.header[:], act.Header)
	p.sent(act.Header.Type, protocol.HeaderLen)
	if w.writing {
		w.behind = append(w.behind, outgoing{header: w.header})
		return
	}
	p.sendResult(p.tr.SendHeader(p.rank, w.header[:]))
}

// slow reports whether a message is written by a goroutine of its own: a long one
// to a stream, and one that is spread over time.
func (l *handshakeLink) slow(bytes int) bool {
	if l.p.tr.Reliable() {
		return bytes >= longWrite
	}
	return l.writer.paced != nil && l.writer.paced.Paced(l.p.rank, bytes)
}

// transmitData sends a DATA message. Towards a datagram socket, which does not
// push back, it does so at once.
func (l *handshakeLink) transmitData(act handshake.Action) {
	p, w := l.p, &l.writer
	payload := l.sending.buf
	l.profile().Put(w.header[:], act.Header)
	l.sentData(len(payload))
	if !w.writing && !l.slow(len(payload)) {
		l.dataSent(act.ID, p.tr.SendData(p.rank, w.header[:], payload, p.cfg.Handshake.Shape))
		return
	}
	// The payload is the caller's again as soon as the request ends, which
	// an error can bring about in the middle of the write: so a copy.
	w.behind = append(w.behind, outgoing{header: w.header, payload: bytes.Clone(payload), data: act.ID})
	if !w.writing {
		w.writing = true
		p.e.driver.goroutines.Go(l.write)
	}
}

// sentData counts a DATA message.
func (l *handshakeLink) sentData(bytes int) {
	p := l.p
	p.sent(protocol.Data, protocol.HeaderLen+bytes)
	if p.tr.Reliable() {
		l.dataOut++
		l.dataBytes += uint64(protocol.HeaderLen + bytes)
		return
	}
	shape, words := &p.cfg.Handshake.Shape, wordsOf(int64(bytes))
	l.dataOut += uint64(shape.Datagrams(words))
	l.dataBytes += uint64(protocol.HeaderLen + shape.PayloadBytes(words))
}

// dataSent notes that the network has taken a DATA message, or has refused it. The wait
// for its ACK begins, unless the send has ended meanwhile.
func (l *handshakeLink) dataSent(id handshake.ID, err error) {
	e := l.p.e
	l.p.sendResult(err)
	e.at = e.driver.now()
	if l.sending != nil && l.sending.id == id {
		l.machine().DataSent(e.at)
	}
}

// write sends what waits for the peer, without the lock, until nothing is left.
func (l *handshakeLink) write() {
	p, e, w := l.p, l.p.e, &l.writer
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
			l.dataSent(out.data, err)
		} else {
			p.sendResult(err)
		}
	}
	w.writing, w.behind = false, nil
}
