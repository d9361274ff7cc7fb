package daemon

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// farEnd is rank 1, which a test plays, as seen by rank 0.
type farEnd struct {
	t    testing.TB
	conn *net.UDPConn
}

// at opens a farEnd at address own that is connected to address peer.
func at(t testing.TB, own, peer string) *farEnd {
	t.Helper()
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(own)),
		net.UDPAddrFromAddrPort(netip.MustParseAddrPort(peer)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return &farEnd{t, conn}
}

func (f *farEnd) says(typ protocol.Type, call protocol.Call, words int, payload []byte) {
	f.t.Helper()
	h := protocol.Header{Src: 1, Type: typ, Call: call, Size: uint32(words)}
	f.sends(append(protocol.CloudFPGA.Append(nil, h), payload...))
}

func (f *farEnd) sends(b []byte) {
	f.t.Helper()
	if _, err := f.conn.Write(b); err != nil {
		f.t.Fatal(err)
	}
}

// reads returns the next datagram.
func (f *farEnd) reads() []byte {
	f.t.Helper()
	b := make([]byte, 2048)
	n, err := f.conn.Read(b)
	if err != nil {
		f.t.Fatal(err)
	}
	return b[:n]
}

// awaits returns the next packet of the given type together with its payload. It skips packets of other types.
func (f *farEnd) awaits(typ protocol.Type) []byte {
	f.t.Helper()
	for {
		b := f.reads()
		if h, defect := protocol.CloudFPGA.Parse(b); defect.OK() && h.Type == typ {
			return b
		}
	}
}

// receives reports whether a packet of the given type arrives within the retransmission timeout of a farEnd.
func (f *farEnd) receives(typ protocol.Type) bool {
	f.t.Helper()
	if err := f.conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		f.t.Fatal(err)
	}
	b := make([]byte, 2048)
	for {
		n, err := f.conn.Read(b)
		if err != nil {
			return false
		}
		if h, defect := protocol.CloudFPGA.Parse(b[:n]); defect.OK() && h.Type == typ {
			return true
		}
	}
}

// rest reads the rest of a DATA message of the given number of words and returns the payload of the whole
// message. b is the first datagram.
func (f *farEnd) rest(b []byte, words int) []byte {
	f.t.Helper()
	data := b[protocol.HeaderLen:]
	for len(data) < 4*words {
		data = append(data, f.reads()...)
	}
	return data[:4*words]
}
