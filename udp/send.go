package udp

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// A full device queue (ENOBUFS) usually has space again within microseconds. Sending fails if the queue is still full
// after maxSendTries attempts, which take about 5 ms in all.
const (
	maxSendTries   = 10
	firstSendPause = 5 * time.Microsecond
	// fullTimeout is the time after which a plain socket that must not wait counts as full. Other
	// sockets report at once that they are full.
	fullTimeout = time.Millisecond
)

// padding is the source of the zero bytes that Shape.PadLines adds to a payload.
var padding [protocol.LineLen]byte

// SendHeader sends one handshake packet. The error is a *SendError.
func (c *Conn) SendHeader(peer int, header []byte) error {
	if err := c.check(peer, header); err != nil {
		return err
	}
	return c.sendOne(peer, header)
}

// SendDatagram sends a datagram unchanged. The error is a *SendError.
func (c *Conn) SendDatagram(peer int, datagram []byte) error {
	if !c.cfg.Map.Has(peer) {
		return c.sendError(peer, 0, 1, ErrNoPeer)
	}
	return c.sendOne(peer, datagram)
}

// sendOne sends a datagram to a peer in the rank map.
func (c *Conn) sendOne(peer int, datagram []byte) error {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	c.outBatch[0] = outgoing{peer: peer, parts: [3][]byte{datagram}}
	_, err := c.sendAll(c.outBatch[:1], true)
	c.outBatch[0] = outgoing{}
	if err != nil {
		return c.sendError(peer, 0, 1, err)
	}
	return nil
}

// SendData sends one DATA message. shape determines how the message is fragmented and padded, and Config.Pace how its
// datagrams are spaced. The error is a *SendError with the number of datagrams sent.
func (c *Conn) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	if err := c.check(peer, header); err != nil {
		return err
	}
	if len(payload)%protocol.WordLen != 0 || uint64(len(payload)) > math.MaxUint32*protocol.WordLen {
		return c.sendError(peer, 0, 1,
			fmt.Errorf("%w: %d bytes of payload are not a whole number of words", ErrBadPacket, len(payload)))
	}
	// A smaller limit would not leave space for a line of payload. This check also rejects the zero Shape.
	if shape.MaxDatagram < protocol.HeaderLen+protocol.LineLen {
		return c.sendError(peer, 0, 1,
			fmt.Errorf("%w: datagrams of at most %d bytes are too short for a header and a line",
				ErrBadPacket, shape.MaxDatagram))
	}
	words := uint32(len(payload) / protocol.WordLen)
	cut := fragmenter{peer: peer, header: header, payload: payload, shape: shape, total: shape.PayloadBytes(words)}
	pace := c.pacing(peer)
	cut.unsegmented = pace.PerDatagram > 0
	if !pace.appliesTo(words) {
		pace = Pacing{}
	}
	if err := c.sendFragments(&cut, pace.PerDatagram); err != nil {
		return c.sendError(peer, cut.sent, shape.NumDatagrams(words), err)
	}
	return nil
}

// Paced reports whether SendData paces a message of the given number of payload bytes to a peer, so that sending takes
// longer than the network requires.
func (c *Conn) Paced(peer, bytes int) bool {
	return c.pacing(peer).appliesTo(uint32(bytes / protocol.WordLen))
}

func (c *Conn) pacing(peer int) Pacing {
	if c.cfg.Pace == nil {
		return Pacing{}
	}
	return c.cfg.Pace(peer)
}

// appliesTo reports whether messages of the given number of words are paced.
func (p Pacing) appliesTo(words uint32) bool { return p.PerDatagram > 0 && words > p.OverWords }

// sendFragments sends the datagrams of a message in batches, at the given average interval. Other messages may be sent
// between two batches.
func (c *Conn) sendFragments(cut *fragmenter, every time.Duration) error {
	for {
		n, err := c.sendBatch(cut, every)
		if n == 0 || err != nil {
			return err
		}
	}
}

// sendBatch sends the next datagrams of a message, and returns their number, or 0 at the end. A paced message waits for
// its tokens without the lock, so that messages to other peers can be sent meanwhile.
func (c *Conn) sendBatch(cut *fragmenter, every time.Duration) (n int, err error) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	for every > 0 {
		wait := c.buckets[cut.peer].takeTokens(time.Now(), every, cut.remaining(len(c.outBatch)))
		if wait == 0 {
			break
		}
		c.sendMu.Unlock()
		pause(wait)
		c.sendMu.Lock()
	}
	for n < len(c.outBatch) && cut.nextDatagram(&c.outBatch[n]) {
		n++
	}
	sent, err := c.sendAll(c.outBatch[:n], true)
	clear(c.outBatch[:n]) // do not retain the caller's memory
	cut.sent += int64(sent)
	return n, err
}

// fragmenter splits a message into datagrams.
type fragmenter struct {
	peer            int
	header, payload []byte
	shape           protocol.Shape
	// total is the number of bytes of payload and padding. offset is the number of these bytes in the datagrams made so
	// far.
	offset, total int64
	headerSent    bool
	// unsegmented is set if the peer is paced. The kernel must then not segment the datagrams from one piece, because
	// it would send them in a burst at the speed of the network.
	unsegmented bool
	// sent is the number of datagrams sent.
	sent int64
}

// remaining returns the number of remaining datagrams, but no more than most.
func (c *fragmenter) remaining(most int) int {
	n := 0
	for rest := *c; n < most && rest.nextDatagram(&outgoing{}); n++ {
	}
	return n
}

// nextDatagram sets out to the next datagram, or returns false at the end.
func (c *fragmenter) nextDatagram(out *outgoing) bool {
	if c.headerSent && c.offset >= c.total {
		return false
	}
	n := c.shape.PayloadAt(c.offset, c.total)
	*out = outgoing{peer: c.peer, unsegmented: c.unsegmented, position: laterInMessage}
	if !c.headerSent {
		out.parts[0], out.position = c.header, firstOfMessage
		c.headerSent = true
	}
	// The bytes after the payload are padding.
	length := int64(len(c.payload))
	from, to := min(c.offset, length), min(c.offset+n, length)
	out.parts[1] = c.payload[from:to]
	out.parts[2] = padding[:n-(to-from)]
	c.offset += n
	return true
}

// sendAll sends all datagrams, and returns the number sent. It retries after an error that concerns an earlier
// datagram. It returns an error if the device queue stays full or, if mayWait is not set, if the socket's buffer stays
// full.
func (c *Conn) sendAll(out []outgoing, mayWait bool) (sent int, err error) {
	pause := firstSendPause
	for tries := 0; sent < len(out); {
		n, err := c.sock.send(out[sent:], mayWait)
		sent += n
		if n > 0 {
			tries, pause = 0, firstSendPause
		}
		if err == nil {
			continue
		}
		tries++
		switch {
		case tries >= maxSendTries:
			return sent, err
		case isAsyncError(err):
		case isFull(err):
			time.Sleep(pause)
			pause *= 2
		default:
			return sent, err
		}
	}
	return sent, nil
}

// isFull reports whether err means that there was no space for the datagram in the device queue, in memory, or in the
// buffer of a socket that must not wait.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EBUSY) ||
		errors.Is(err, syscall.EAGAIN) || errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *Conn) check(peer int, header []byte) error {
	if !c.cfg.Map.Has(peer) {
		return c.sendError(peer, 0, 1, ErrNoPeer)
	}
	if len(header) != protocol.HeaderLen {
		return c.sendError(peer, 0, 1,
			fmt.Errorf("%w: a header of %d bytes; a header has %d", ErrBadPacket, len(header), protocol.HeaderLen))
	}
	return nil
}

func (c *Conn) sendError(peer int, sent, of int64, err error) error {
	if errors.Is(err, net.ErrClosed) {
		err = mpe.ErrTransportClosed
	}
	return &SendError{Rank: c.cfg.Rank, Peer: peer, Addr: c.peerMap.Load().Addr(peer), Sent: sent, Total: of, Err: err}
}
