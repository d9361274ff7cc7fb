package standin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// tcpRole runs one of the test's programs as rank 1 at address 127.x.y.2.
func tcpRole(t *testing.T, program ...string) (k *running, network string) {
	network = loopback.Network(t)
	k = tcpRoleIn(t, network, program...)
	t.Cleanup(func() { k.cancel(t) })
	return k, network
}

func tcpRoleIn(t *testing.T, network string, program ...string) *running {
	c := newCluster(t, 2)
	t.Cleanup(c.close)
	k, w := rtlNet(t, c, program...)
	w.addresses = addressesIn(network)
	c.start(1, k)
	return k
}

func tcpStats(k *running) (s state.TCP) {
	if sim := k.Kernel.Stats().Simulation; sim != nil && sim.TCP != nil {
		s = *sim.TCP
	}
	return s
}

// connect opens a connection from an address. It waits until the port is open.
func connect(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from + ":0"))}
	var conn net.Conn
	until(t, "an open port", func() (ok bool) {
		var err error
		if conn, err = d.DialContext(t.Context(), "tcp", to); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// echoed sends n bytes and compares them with the echo.
func echoed(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	sent, got := make([]byte, n), make([]byte, n)
	for i := range sent {
		sent[i] = byte(i*7 + n)
	}
	go conn.Write(sent)
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes do not come back: %v", n, err)
	}
}

func TestRTLNetTCP(t *testing.T) {
	k, network := tcpRole(t, "tcp-echo")
	first := connect(t, network+"1", network+"2:2720")
	second := connect(t, network+"1", network+"2:2720")
	for _, n := range []int{1, 8, 9, 1352, 1353, 5000, 200_000} {
		echoed(t, first, n)
		echoed(t, second, n)
	}
	if s := tcpStats(k); s.Open != 2 || s.Accepted != 2 || s.Opened+s.Failed+s.Unknown+s.Limit+s.Chunks.Refused != 0 ||
		s.Received == 0 || s.Sent < s.Received {
		t.Errorf("%+v", s)
	}
	// Connect to a port that the role has not opened.
	if conn, err := net.DialTimeout("tcp", network+"2:2718", time.Minute); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a closed port: %v, %v", conn, err)
	}
	// Connect from an address that belongs to no rank.
	if _, err := connect(t, network+"3", network+"2:2720").Read(make([]byte, 1)); err == nil {
		t.Error("an unknown address is served")
	}
	// Open more connections than the shell supports.
	for range 6 {
		echoed(t, connect(t, network+"1", network+"2:2720"), 10)
	}
	if _, err := connect(t, network+"1", network+"2:2720").Read(make([]byte, 1)); err == nil {
		t.Error("a ninth connection is served")
	}
	until(t, "the counts", func() bool { // the counts include connections that have already been closed
		s := tcpStats(k)
		return s.Open == 8 && s.Unknown == 1 && s.Limit == 1
	})
	// When one connection is closed, another one can be opened.
	first.Close()
	until(t, "the end of a connection", func() bool { return tcpStats(k).Open == 7 })
	echoed(t, connect(t, network+"1", network+"2:2720"), 100)
}

// TestRTLNetTCPOpens uses a role that sends first. The connection is opened, and the answer comes from the connection's
// port. After the connection is closed, the next chunk opens another one.
func TestRTLNetTCPOpens(t *testing.T) {
	network := loopback.Network(t)
	var at [2]net.Listener
	for i := range at {
		l, err := net.Listen("tcp", fmt.Sprintf("%s1:%d", network, 4000+i))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at[i] = l
	}
	k := tcpRoleIn(t, network, "tcp-first", "pair")
	defer k.cancel(t)
	opened := func(l net.Listener) net.Conn {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if from := conn.RemoteAddr().String(); !strings.HasPrefix(from, network+"2:") {
			t.Errorf("from %s", from)
		}
		hello := make([]byte, 8)
		if _, err := io.ReadFull(conn, hello); err != nil || string(hello) != "firstone" {
			t.Fatalf("%q, %v", hello, err)
		}
		return conn
	}
	first, second := opened(at[0]), opened(at[1])
	defer second.Close()
	echoed(t, first, 3000)
	first.Close()
	until(t, "the end of the first", func() bool { return tcpStats(k).Open == 1 })
	if _, err := second.Write([]byte("again")); err != nil {
		t.Fatal(err)
	}
	opened(at[0]).Close()
	if s := tcpStats(k); s.Opened != 3 || s.Accepted != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRTLNetTCPFails checks that data that cannot be sent is dropped and counted, and that the error is logged
// only once.
func TestRTLNetTCPFails(t *testing.T) {
	k, network := tcpRole(t, "tcp-first", "twice")
	// The chunks are written separately or together.
	until(t, "the failures", func() bool { return tcpStats(k).Dropped >= 16 })
	if s := tcpStats(k); s.Dropped != 16 || s.Failed < 1 || s.Failed > 2 || s.Open != 0 {
		t.Errorf("%+v", s)
	}
	logged := k.logs.FilterMessage("chunk of the role not sent").All()
	if len(logged) != 1 || !strings.Contains(fmt.Sprint(logged[0].ContextMap()["error"]), network+"1:4000") ||
		k.Kernel.Stats().Errors != 1 {
		t.Errorf("logged %+v, %d errors", logged, k.Kernel.Stats().Errors)
	}
}

// TestRTLNetTCPStalls checks that data that a role does not accept stays with the sender, and that data that
// the peer does not accept stays with the role.
func TestRTLNetTCPStalls(t *testing.T) {
	t.Run("the role", func(t *testing.T) {
		k, network := tcpRole(t, "tcp-deaf")
		conn := connect(t, network+"1", network+"2:2718")
		fill(t, conn)
		until(t, "as much data as fits", func() bool { return tcpStats(k).Received > 0 })
		if s := tcpStats(k); s.Received > 2*4096*8/cosim.MaxChunk {
			t.Errorf("%+v", s)
		}
	})
	t.Run("its peer", func(t *testing.T) {
		k, network := tcpRole(t, "tcp-echo")
		conn := connect(t, network+"1", network+"2:2720")
		var sent int64
		until(t, "the stall", func() bool { // a slow simulation is not a stall
			sent += fill(t, conn)
			return strings.Contains(k.Kernel.Stats().Simulation.Text, "accepts no more data")
		})
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, conn, sent); err != nil {
			t.Errorf("%d of %d bytes come back: %v", n, sent, err)
		}
	})
}

// fill writes until the other side accepts no more.
func fill(t *testing.T, conn net.Conn) (sent int64) {
	t.Helper()
	if err := conn.(*net.TCPConn).SetWriteBuffer(4096); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<16)
	for {
		if err := conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Write(block)
		if sent += int64(n); errors.Is(err, os.ErrDeadlineExceeded) {
			return sent
		}
		if err != nil || sent > 1<<30 {
			t.Fatalf("%d bytes are taken: %v", sent, err)
		}
	}
}

// TestRTLNetTCPEnds checks that the last bytes of a role are written before the connections are closed at the
// end of the simulation.
func TestRTLNetTCPEnds(t *testing.T) {
	network := loopback.Network(t)
	l, err := net.Listen("tcp", network+"1:4000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	k := tcpRoleIn(t, network, "tcp-last")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "firstone" {
		t.Errorf("%q, %v", got, err)
	}
	if err := k.wait(t); err != nil {
		t.Error(err)
	}
}

// chunkMeta returns the metadata of a chunk to a port of a rank.
func chunkMeta(rank, port, own uint64) cosim.Record {
	return cosim.Record{Kind: cosim.KindTCP + cosim.KindOutMeta, Data: rank | port<<8 | 1<<24 | own<<32}
}

func init() {
	network := cosim.Hello{Version: cosim.Version, FIFO: 4096, Boundary: cosim.BoundaryTCP}
	first := []cosim.Record{chunkMeta(0, 4000, 0),
		{Kind: cosim.KindTCP + cosim.KindOutData, Keep: 0xff, Last: true, Data: 0x656e6f7473726966}}
	// back returns records that send the received chunks back on the connections from which they came.
	back := func(s *simulator) (records []cosim.Record) {
		for _, r := range s.got {
			switch r.Kind {
			case cosim.KindTCP + cosim.KindInMeta:
				records = append(records, chunkMeta(r.Data>>24&0xff, r.Data>>32&0xffff, r.Data>>8&0xffff))
			case cosim.KindTCP + cosim.KindInData:
				r.Kind = cosim.KindTCP + cosim.KindOutData
				records = append(records, r)
			}
		}
		return records
	}
	programs["tcp-echo"] = func([]string) int {
		s := hello(network)
		s.step(cosim.Record{Kind: cosim.KindPorts, Data: 1},
			cosim.Record{Kind: cosim.KindTCP + cosim.KindPorts, Data: 4})
		var out []cosim.Record
		for {
			s.begin()
			if len(out) == 0 {
				out, s.got = back(s), nil
			}
			n := min(len(out), int(s.tcpLines))
			held := s.holds()
			if n < len(out) {
				held.StalledSince[cosim.KindOutData] = s.cycle
			}
			s.answer(held, out[:n]...)
			out = out[n:]
		}
	}
	// tcp-first sends to port 4000 of rank 0: once, or twice if its argument is "twice". If the argument is
	// "pair", it also sends to port 4001. It then echoes. When it receives "again", it sends to port 4000 once
	// more.
	programs["tcp-first"] = func(args []string) int {
		s := hello(network)
		s.step(first...)
		switch {
		case slices.Contains(args, "twice"):
			s.step(first...)
		case slices.Contains(args, "pair"):
			s.step(chunkMeta(0, 4001, 0), first[1])
		}
		for {
			records := back(s)
			if n := len(s.got); n > 0 && s.got[n-1].Data == 0x6e69616761 {
				records = first
			}
			s.got = nil
			s.step(records...)
		}
	}
	programs["tcp-last"] = func([]string) int {
		s := hello(network)
		s.step(first...)
		s.begin()
		return 0
	}
	// tcp-deaf accepts nothing.
	programs["tcp-deaf"] = func([]string) int {
		s := hello(network)
		s.step(cosim.Record{Kind: cosim.KindTCP + cosim.KindPorts, Data: 1})
		for {
			s.begin()
			s.answer(s.holds())
		}
	}
}
