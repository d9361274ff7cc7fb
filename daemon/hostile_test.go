package daemon

import (
	"net"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestBadPackets checks that packets that a correct peer never sends are counted by reason, and do not disturb
// other peers.
func TestBadPackets(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin", "peer: software"))
	sender := func(rank int) *net.UDPConn {
		local := net.UDPAddrFromAddrPort(mustParse(t, c.yaml("", echoes(9, "")...)).Rank(rank).Address.AddrPort)
		conn, err := net.DialUDP("udp", local, net.UDPAddrFromAddrPort(r.cfg.Rank(0).Address.AddrPort))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	peer, stranger := sender(2), sender(7)

	header := func(change func(*protocol.Header)) []byte {
		h := protocol.Header{Dst: 0, Src: 2, Call: protocol.SendInt, Type: protocol.SendRequest}
		if change != nil {
			change(&h)
		}
		return protocol.CloudFPGA.Append(nil, h)
	}
	with := func(at int, b byte) []byte {
		h := header(nil)
		h[at] = b
		return h
	}
	data := func(words uint32, bytes int) []byte {
		h := header(func(h *protocol.Header) { h.Type, h.Size = protocol.Data, words })
		return append(h, make([]byte, bytes)...)
	}
	const copies = 3
	for _, tt := range []struct {
		reason state.DropReason
		conn   *net.UDPConn
		packet []byte
		log    string
	}{
		{state.DropStartMark, peer, with(0, 0), "byte 0 is 0x00, but the start mark is 0x96"},
		{state.DropEndMark, peer, with(31, 1), "byte 31 is 0x01, but the end mark is 0x96"},
		{state.DropReserved, peer, with(18, 5),
			"byte 18 is 0x05, but must be 0; a peer that sends tags follows the protocol page"},
		{state.DropCall, peer, with(16, 9), "byte 16 is 0x09, but the calls are"},
		{state.DropType, peer, with(17, 9), "byte 17 is 0x09, but the packet types are"},
		{state.DropShort, peer, header(nil)[:20], "20 bytes, but a header has 32"},
		{state.DropShort, peer, nil, "0 bytes, but a header has 32"},
		{state.DropSourceRank, peer, header(func(h *protocol.Header) { h.Src = 1 }),
			"packet claims source rank 1, but its address belongs to rank 2: compare the rank maps of both sides"},
		{state.DropDestination, peer, header(func(h *protocol.Header) { h.Dst = 3 }),
			"packet is addressed to rank 3, not to rank 0"},
		{state.DropLength, peer, append(header(nil), 0, 0, 0, 0), "invalid datagram length of 36 bytes"},
		{state.DropLength, peer, make([]byte, 5000), "invalid datagram length of 5000 bytes"},
		{state.DropSize, peer, data(0xffffffff, 1384), "message of 4294967295 words exceeds the limit"},
		{state.DropUnsolicited, peer, data(2, 8), "DATA without CLEAR_TO_SEND"},
		{state.DropDirection, peer, header(func(h *protocol.Header) { h.Call = protocol.RecvInt }),
			"invalid call RECV_INT in a SEND_REQUEST packet"},
		{state.DropStale, peer, header(func(h *protocol.Header) { h.Type, h.Call = protocol.Ack, protocol.RecvInt }),
			"packet matches no pending operation"},
		{state.DropBarrier, peer, header(func(h *protocol.Header) { h.Call = protocol.Barrier }),
			"BARRIER is not supported, as on deployed nodes"},
		{state.DropUnknownAddress, stranger, header(nil), "address is not in the rank map"},
	} {
		count := func() uint64 {
			s := r.ranks[0].Engine.Snapshot()
			return s.Dropped[tt.reason] + s.Peers[1].Dropped[tt.reason]
		}
		before := count()
		for range copies {
			if _, err := tt.conn.Write(tt.packet); err != nil {
				t.Fatal(err)
			}
		}
		await(t, tt.reason.String(), func() bool { return count() == before+copies })
		r.ping(t, 1, 347, 1)
		if before == 0 { // a second line of the same kind within a second is not logged
			r.log.waitFor(t, tt.log)
		}
	}
	s, err := r.client.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Ranks[0].Engine.Peers[1].Dropped[state.DropSourceRank]; got != copies {
		t.Errorf("status counts %d packets with a wrong source rank, want %d", got, copies)
	}
	if log := r.log.String(); strings.Count(log, "the rank maps of the two sides differ") > 3 {
		t.Errorf("repeated lines:\n%s", log)
	}
}
