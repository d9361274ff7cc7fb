package mpe

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"syscall"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// longWrite is the minimum length, in bytes, of payload that a separate goroutine writes to a stream. A write to a
// stream blocks while the peer does not read. Without the goroutine, two ranks writing long messages to each other
// could therefore deadlock, because neither would read while it writes.
const longWrite = 64 << 10

// outlet sends packets to a peer.
type outlet struct {
	peer       int
	transport  Transport
	handshakes HandshakeTransport // nil if transport carries the extended profile only
	datagrams  DatagramTransport  // or nil
	shape      protocol.Shape     // of DATA messages
	writing    bool               // a goroutine is writing to the peer
	queued     []outgoing         // packets to send when that goroutine is done
}

// outgoing is a handshake packet that waits for the end of a long write to the same peer.
type outgoing struct {
	header  [protocol.HeaderLen]byte
	payload []byte
	// data is the ID of the send to which a DATA message belongs, or 0 if the packet is not a DATA message.
	data handshake.ID
}

func newOutlet(peer int, p *Peer) outlet {
	o := outlet{peer: peer, transport: p.Transport, shape: p.Handshake.Shape}
	o.handshakes, _ = p.Transport.(HandshakeTransport)
	o.datagrams, _ = p.Transport.(DatagramTransport)
	return o
}

// needsWriter reports whether a separate goroutine must write a message, because it is a long message to a stream or
// because it is paced.
func (o *outlet) needsWriter(bytes int) bool {
	if o.transport.Reliable() {
		return bytes >= longWrite
	}
	return o.datagrams != nil && o.datagrams.Paced(o.peer, bytes)
}

// effects implements core.Effects for an engine.
type effects Engine

// SendHeader implements core.Effects.
func (f *effects) SendHeader(peer int, header []byte) error {
	o := &f.outlets[peer]
	if o.writing {
		o.queued = append(o.queued, outgoing{header: [protocol.HeaderLen]byte(header)})
		return nil
	}
	return o.handshakes.SendHeader(peer, header)
}

// SendData implements core.Effects. Writes to a datagram socket do not block, so most messages are sent at once.
func (f *effects) SendData(peer int, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool,
	err error) {
	engine, o := (*Engine)(f), &f.outlets[peer]
	if !o.writing && !o.needsWriter(len(payload)) {
		err = o.handshakes.SendData(peer, header, payload, o.shape)
		return engine.clock.now(), true, err
	}
	// Copy the payload, because an error may end the request during the write, and the caller may then reuse the
	// payload's memory.
	o.queued = append(o.queued,
		outgoing{header: [protocol.HeaderLen]byte(header), payload: bytes.Clone(payload), data: id})
	if !o.writing {
		o.writing = true
		engine.goroutines.Go(func() { o.write(engine) })
	}
	return 0, false, nil
}

// DropQueued implements core.Effects.
func (f *effects) DropQueued(peer int) { f.outlets[peer].queued = nil }

// SendPackets implements core.Effects.
func (f *effects) SendPackets(peer int, packets []Packet) (tooLong bool, err error) {
	_, err = f.outlets[peer].transport.SendPackets(peer, packets)
	return err != nil && errors.Is(err, syscall.EMSGSIZE), err
}

// LongestDatagram implements core.Effects.
func (f *effects) LongestDatagram(peer int) int {
	return f.outlets[peer].datagrams.LongestDatagram(peer)
}

// Random implements core.Effects.
func (f *effects) Random() uint64 { return rand.Uint64() }

// NewRequest implements core.Effects.
func (f *effects) NewRequest() *core.Request { return &f.requests.get().core }

// Release implements core.Effects.
func (f *effects) Release(r *core.Request) { requestOf(r).release() }

// write sends the peer's queued packets, without holding the lock, until the queue is empty.
func (o *outlet) write(engine *Engine) {
	engine.lock()
	defer engine.unlock()
	for !engine.core.IsClosed() && len(o.queued) > 0 {
		out := o.queued[0]
		o.queued = o.queued[1:]
		engine.unlock()
		var err error
		if out.data != 0 {
			err = o.handshakes.SendData(o.peer, out.header[:], out.payload, o.shape)
		} else {
			err = o.handshakes.SendHeader(o.peer, out.header[:])
		}
		engine.lock()
		if out.data != 0 {
			engine.core.DataSent(o.peer, out.data, err)
		} else {
			engine.core.HeaderSent(o.peer, err)
		}
	}
	o.writing, o.queued = false, nil
}
