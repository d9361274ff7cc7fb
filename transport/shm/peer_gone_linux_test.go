package shm

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestPeerGone checks that each side reports the end of its peer's process once, and after all packets from the
// peer.
func TestPeerGone(t *testing.T) {
	for gone := range 2 {
		m := transporttest.Map(t, 2)
		kept := transporttest.Start(t, listen(t, Config{Rank: 1 - gone, Map: m}))
		for range 2 {
			other := transporttest.Start(t, listen(t, Config{Rank: gone, Map: m}))
			other.WaitConnected(t, 1-gone)
			kept.WaitConnected(t, gone)
			first := transporttest.Packet(gone, 1-gone, 1, 5)
			other.SendAllPackets(t, 1-gone, []mpe.Packet{first})
			kept.CheckPacket(t, gone, first)
			other.Close()
			kept.WaitGone(t, gone)
		}
	}
}

// TestClosingMessage checks that a closed Conn sends the closing message if the peer has a link or will have one. It
// must not send it earlier, because the peer would mistake it for a hello. The peer reads the message even if
// the peer's own last hello arrived too late.
func TestClosingMessage(t *testing.T) {
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: t.TempDir() + "/s", Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, linked := range []bool{false, true} {
		dialed, err := net.DialUnix("unixpacket", nil, ln.Addr().(*net.UnixAddr))
		if err != nil {
			t.Fatal(err)
		}
		defer dialed.Close()
		accepted, err := ln.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		k := &linkSetup{conn: accepted}
		if linked {
			if err := k.confirmLink(hello{purpose: linkReady}); err != nil {
				t.Fatal(err)
			}
			if h, err := receiveHello(dialed); err != nil || h.purpose != linkReady {
				t.Fatal(h, err)
			}
			if err := sendHello(dialed, hello{purpose: linkReady}); err != nil {
				t.Fatal(err)
			}
		}
		k.closeConn()
		n, _, _, err := receive(dialed, make([]byte, 2), nil)
		if linked && n != 1 || !linked && (n != 0 || !errors.Is(err, io.EOF)) {
			t.Errorf("linked %v: %d bytes, %v", linked, n, err)
		}
	}
}
