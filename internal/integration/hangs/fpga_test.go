package hangs_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fpga is rank 1: the model of an FPGA on a real socket, whose program makes one receive from rank 0.
type fpga struct {
	conn  *net.UDPConn
	model *mpemodel.Model
	// loses reports whether the network loses a datagram: the number of those before in this direction.
	losesIn, losesOut func(n int, b []byte) bool
}

// startFPGA starts it: its program receives so many words.
func (c *cluster) startFPGA(own, peer string, words uint32, losesIn, losesOut func(n int, b []byte) bool) {
	c.t.Helper()
	addr := func(last string) *net.UDPAddr {
		return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(c.net + last + ":2718"))
	}
	conn, err := net.DialUDP("udp", addr(own), addr(peer))
	if err != nil {
		c.t.Fatal(err)
	}
	f := &fpga{conn, mpemodel.New(mpemodel.Config{Rank: 1, Peers: []int{0}}), losesIn, losesOut}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(c.t, words)
	}()
	c.t.Cleanup(func() {
		conn.Close()
		<-ended
	})
}

func (f *fpga) run(t *testing.T, words uint32) {
	began := time.Now()
	if err := f.model.Recv(0, 0, words, protocol.Int); err != nil {
		t.Error(err)
		return
	}
	b := make([]byte, 2048)
	in, out := 0, 0
	for {
		for _, p := range f.model.Out() {
			if !f.losesOut(out, p.Bytes) {
				_, _ = f.conn.Write(p.Bytes) // what does not go is lost
			}
			out++
		}
		deadline := time.Time{}
		if next, ok := f.model.Next(); ok {
			deadline = began.Add(next)
		}
		if f.conn.SetReadDeadline(deadline) != nil {
			return
		}
		switch n, err := f.conn.Read(b); {
		case err == nil:
			if !f.losesIn(in, b[:n]) {
				f.model.Datagram(time.Since(began), 0, b[:n])
			}
			in++
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.model.Tick(time.Since(began))
		case errors.Is(err, net.ErrClosed):
			return
		}
	}
}

func none(int, []byte) bool { return false }

// packet loses all packets of a type.
func packet(lost protocol.Type) func(int, []byte) bool {
	return func(_ int, b []byte) bool {
		h, defect := protocol.CloudFPGA.Parse(b)
		return defect.OK() && h.Type == lost
	}
}

// TestFPGA: hangs of which an FPGA, which nobody can ask, is one side.
func TestFPGA(t *testing.T) {
	const words = 5000 // 15 datagrams
	for _, tt := range []struct {
		name              string
		losesIn, losesOut func(int, []byte) bool
		program           program
		deadlines         string
		want              want
	}{
		{"lost ACK of a fragmented message", none, packet(protocol.Ack), sends(1, 0, words), "1m", lostAck},
		{"lost datagram", func(n int, _ []byte) bool { return n == 3 }, none, sends(1, 0, words), "1m", lostAck},
		{"posts no receive", packet(protocol.SendRequest), none, sends(1, 0, words), "1m", neverHeard},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			text := c.text("profile: cloudfpga, deadlines: {clear: 1m, data: 1m, ack: "+tt.deadlines+"}", "1, run: host", "2, peer: fpga")
			c.startFPGA("2", "1", words, tt.losesIn, tt.losesOut)
			c.start(here{}, text, 0)
			c.run(0, tt.program)
			c.explained(tt.want)
		})
	}
}
