package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxRecvErrors is the number of consecutive errors that Recv ignores if they concern earlier datagrams.
const maxRecvErrors = 16

// Recv waits for datagrams and returns their number. The kind of each is mpe.RxDatagram, or mpe.RxTruncated if the
// datagram exceeds its sender's limit.
func (c *Conn) Recv(batch []mpe.RxPacket) (int, error) {
	if len(batch) == 0 {
		return 0, fmt.Errorf("udp: rank %d: Recv into an empty batch", c.cfg.Rank)
	}
	for failed := 0; ; failed++ {
		in := c.inBatch[:min(len(batch), len(c.inBatch))]
		n, err := c.sock.recv(in)
		if !isAsyncError(err) {
			return c.finishPoll(batch, n, err)
		}
		if failed >= maxRecvErrors {
			return 0, c.recvError(err)
		}
	}
}

// CanPoll reports whether Poll, Wakeup and Sleep may be called.
func (c *Conn) CanPoll() bool { return c.caps.canPoll }

// Poll is like Recv, but returns 0 if no datagram is available. If payload is expected from several peers, it peeks at
// the next datagram to find out from which peer it comes.
func (c *Conn) Poll(batch []mpe.RxPacket, all *mpe.Placements) (int, error) {
	in := c.inBatch[:min(len(batch), len(c.inBatch))]
	if all == nil {
		n, err := c.sock.poll(in)
		return c.finishPoll(batch, n, err)
	}
	at := all.Single()
	if at == nil && c.sock.isDrained() {
		n, from, err := c.sock.peek(c.peekBuf[:])
		if !from.IsValid() || err != nil {
			return c.finishPoll(batch, 0, err)
		}
		if at = all.ForPeer(c.peerAt(from)); at != nil && at.HeaderLen > 0 {
			if h, _, defect := protocol.ParseExtendedHeader(c.peekBuf[:n]); !defect.OK() || !at.MatchesHeader(&h) {
				at = nil
			}
		}
	}
	if at == nil {
		return c.Poll(batch, nil)
	}
	n, err := c.sock.pollInto(in, at.HeaderLen, at.Buf)
	return c.finishPoll(batch, n, err)
}

// finishPoll converts the result of a poll. An asynchronous error counts as an empty poll, and the engine polls again.
func (c *Conn) finishPoll(batch []mpe.RxPacket, n int, err error) (int, error) {
	switch {
	case err == nil:
		for i := range c.inBatch[:n] {
			batch[i] = c.newRxPacket(&c.inBatch[i])
		}
		return n, nil
	case errors.Is(err, net.ErrClosed):
		return 0, mpe.ErrTransportClosed
	case isAsyncError(err):
		return 0, nil
	}
	return 0, c.recvError(err)
}

func (c *Conn) recvError(err error) error {
	return fmt.Errorf("udp: rank %d at %v cannot receive: %w", c.cfg.Rank, c.localAddr, err)
}

// Wakeup returns the socket's file descriptor, which becomes readable when a datagram arrives.
func (c *Conn) Wakeup() int { return c.sock.pollFD() }

// Sleep reports whether the caller may sleep: Poll has returned all datagrams that it received from the system.
func (c *Conn) Sleep() bool { return c.sock.sleep() }

// Unwatch implements progress.Unwatcher.
func (c *Conn) Unwatch() { c.sock.unwatch() }

// newRxPacket converts a received datagram, or a piece that the kernel has coalesced. Datagrams longer than their
// sender may send become RxTruncated.
func (c *Conn) newRxPacket(in *incoming) mpe.RxPacket {
	packet := mpe.RxPacket{Kind: mpe.RxDatagram, Peer: c.peerAt(in.from), SourceAddr: in.from, Bytes: in.bytes,
		Tail: in.rest}
	if in.segmentLen > 0 && in.segmentLen <= c.maxRxLen(packet.Peer) {
		packet.DatagramLen = in.segmentLen
		return packet
	}
	if most := c.maxRxLen(packet.Peer); in.truncated || len(in.bytes)+len(in.rest) > most {
		packet.Kind = mpe.RxTruncated
		packet.Bytes, packet.Tail = in.bytes[:min(len(in.bytes), most)], nil
	}
	return packet
}

// peerAt returns the rank at an address, or mpe.UnknownPeer.
func (c *Conn) peerAt(from netip.AddrPort) int {
	// Most datagrams come from the same source as the previous one.
	if where := c.peerMap.Load(); from != c.lastFrom || where != c.lastMap {
		c.lastFrom, c.lastMap = from, where
		// An unknown address resolves to rankmap.NoRank, which is mpe.UnknownPeer.
		c.lastPeer = where.Resolve(from)
	}
	return c.lastPeer
}

// maxRxLen returns the maximum length of a datagram that a peer may send, in bytes.
func (c *Conn) maxRxLen(peer int) int {
	if c.cfg.acceptsLarge(peer) {
		return MaxDatagram
	}
	return maxRxPacket
}

// isAsyncError reports whether err concerns an earlier datagram, or a signal interrupted the call. The system did not
// execute the call that failed with such an error.
func isAsyncError(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EINTR)
}
