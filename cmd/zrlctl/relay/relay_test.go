package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// timeout is the maximum time that a test waits for expected data.
const timeout = 10 * time.Second

// start starts a relay between three ranks at free addresses.
func start(t *testing.T, transport string, rules ...string) (*Relay, *Plan) {
	t.Helper()
	ranks, pool := make([]config.Rank, 3), make([]string, 3)
	for i := range ranks {
		own := transporttest.FreeAddr(t)
		ranks[i] = config.Rank{Rank: i, Address: config.Address{AddrPort: own}, Run: config.RunHost}
		// Use the same address in another network, where no process listens.
		b := own.Addr().As4()
		b[1]++
		b[2] ^= 0x80
		pool[i] = netip.AddrFrom4(b).String()
	}
	addrs, err := cluster.ParsePool(strings.Join(pool, ","))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(config.New(ranks...), addrs, transport)
	if err != nil {
		t.Fatal(err)
	}
	var script impair.Script
	for _, text := range rules {
		rule, err := impair.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		script.Rules = append(script.Rules, rule)
	}
	r, err := Listen(p, script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, p
}

func header(kind protocol.Type, from, to, size int) []byte {
	return protocol.CloudFPGA.Append(nil,
		protocol.Header{Src: uint32(from), Dst: uint32(to), Type: kind, Size: uint32(size)})
}

// udpRank opens the socket of a rank.
func udpRank(t *testing.T, addr netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantDatagram checks the contents of the next datagram, and that it comes from the relay's address for rank from.
func wantDatagram(t *testing.T, conn *net.UDPConn, p *Plan, from int, want []byte) {
	t.Helper()
	b := make([]byte, 1<<16)
	if err := conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	n, source, err := conn.ReadFromUDPAddrPort(b)
	if err != nil {
		t.Fatal(err)
	}
	if _, seen := p.Addrs(from); source != seen || !bytes.Equal(b[:n], want) {
		t.Errorf("%x came from %v, want %x from %v", b[:n], source, want, seen)
	}
}

func TestDatagrams(t *testing.T) {
	r, p := start(t, "udp",
		"from 0 to 1 packet ACK nth 2 loss 100%", "from 1 to 0 duplicate 100% late 1ms", "from 0 to 2 nth 1 delay 20ms",
		"from 2 corrupt 100%")
	var conns []*net.UDPConn
	for rank := range 3 {
		own, _ := p.Addrs(rank)
		conns = append(conns, udpRank(t, own))
	}
	send := func(from, to int, b []byte) {
		t.Helper()
		if _, seen := p.Addrs(to); true {
			if _, err := conns[from].WriteToUDPAddrPort(b, seen); err != nil {
				t.Fatal(err)
			}
		}
	}
	ack := func(from, to, n int) []byte { return header(protocol.Ack, from, to, n) }
	for n := range 3 {
		send(0, 1, ack(0, 1, n))
	}
	wantDatagram(t, conns[1], p, 0, ack(0, 1, 0))
	wantDatagram(t, conns[1], p, 0, ack(0, 1, 2))

	send(1, 0, ack(1, 0, 7))
	wantDatagram(t, conns[0], p, 1, ack(1, 0, 7))
	wantDatagram(t, conns[0], p, 1, ack(1, 0, 7))

	send(0, 2, ack(0, 2, 1)) // the next packet overtakes it
	send(0, 2, make([]byte, 60_000))
	wantDatagram(t, conns[2], p, 0, make([]byte, 60_000))
	wantDatagram(t, conns[2], p, 0, ack(0, 2, 1))

	send(2, 1, make([]byte, 4))
	b := make([]byte, 100)
	if n, _, err := conns[1].ReadFromUDPAddrPort(b); err != nil || n != 4 || bytes.Equal(b[:4], make([]byte, 4)) {
		t.Errorf("%x, %v", b[:n], err)
	}

	stranger := udpRank(t, transporttest.FreeAddr(t))
	_, seen := p.Addrs(1)
	if _, err := stranger.WriteToUDPAddrPort(ack(0, 1, 9), seen); err != nil {
		t.Fatal(err)
	}
	send(0, 1, ack(0, 1, 8))
	wantDatagram(t, conns[1], p, 0, ack(0, 1, 8))

	x := r.Report()
	want := impair.Count{Packets: 8, Bytes: 6*32 + 60_004, Lost: 1, Duplicated: 1, Delayed: 1, Corrupted: 1}
	if x.Total != want || x.UnknownSource != 1 || x.Failed != 0 || x.Transport != "udp" || len(x.Rows) != 5 {
		t.Errorf("%+v", x)
	}
	var text bytes.Buffer
	if err := x.Print(&text); err != nil ||
		!strings.Contains(text.String(), "\n     0    1      ACK        4     1           0        0          0\n") ||
		!strings.Contains(text.String(), "1 from addresses of no rank, not relayed") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// tcpPair returns both ends of a connection from rank 0 to rank 1.
func tcpPair(t *testing.T, p *Plan) (a, b *net.TCPConn) {
	t.Helper()
	own, seen := p.Addrs(1)
	ln, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(own))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	from, fromSeen := p.Addrs(0)
	if a, err = net.DialTCP("tcp4", &net.TCPAddr{IP: from.Addr().AsSlice()},
		net.TCPAddrFromAddrPort(seen)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := ln.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if got := b.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); got != fromSeen.Addr() {
		t.Errorf("rank 1 is dialed from %v, want %v", got, fromSeen.Addr())
	}
	for _, conn := range []net.Conn{a, b} {
		if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func wantStream(t *testing.T, conn net.Conn, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d of %d bytes came, or others: %v", n, len(want), err)
	}
}

func write(t *testing.T, conn net.Conn, parts ...[]byte) {
	t.Helper()
	if _, err := conn.Write(bytes.Join(parts, nil)); err != nil {
		t.Fatal(err)
	}
}

func TestStreams(t *testing.T) {
	r, p := start(t, "tcp", "delay 1ms~3ms")
	a, b := tcpPair(t, p)
	message := append(header(protocol.Data, 0, 1, 50_000), bytes.Repeat([]byte{1, 2, 3, 4}, 50_000)...)
	request, ack := header(protocol.SendRequest, 0, 1, 0), header(protocol.Ack, 1, 0, 0)
	write(t, a, request, message, request)
	wantStream(t, b, bytes.Join([][]byte{request, message, request}, nil))
	write(t, b, ack, ack[:10])
	b.CloseWrite()
	wantStream(t, a, append(bytes.Clone(ack), ack[:10]...))
	if n, err := a.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d bytes at the end, %v", n, err)
	}
	write(t, a, request) // the other direction continues
	wantStream(t, b, request)
	x := r.Report()
	if x.Total.Bytes != uint64(len(message)+4*32+10) || x.Total.Delayed != x.Total.Packets ||
		x.Rows[1].Packet != "SEND_REQUEST" || x.Rows[1].Packets != 3 {
		t.Errorf("%+v", x)
	}
	var text bytes.Buffer
	if err := x.Print(&text); err != nil || !strings.Contains(text.String(), "TYPE  PACKETS  DELAYED\n") {
		t.Errorf("%v\n%s", err, &text)
	}
	// Connect from an address that belongs to no rank.
	_, seen := p.Addrs(1)
	stranger, err := net.Dial("tcp4", seen.String())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, err := io.ReadAll(stranger); err != nil {
		t.Error(err)
	}
	if x := r.Report(); x.UnknownSource != 1 {
		t.Errorf("%+v", x)
	}
}

// TestStreamsEnd: connections end as the rule specifies.
func TestStreamsEnd(t *testing.T) {
	request, ack := header(protocol.SendRequest, 0, 1, 0), header(protocol.Ack, 0, 1, 0)
	t.Run("reset", func(t *testing.T) {
		r, p := start(t, "tcp", "packet ACK reset 100%")
		a, b := tcpPair(t, p)
		write(t, a, request)
		wantStream(t, b, request)
		write(t, a, ack)
		for _, conn := range []net.Conn{a, b} {
			if _, err := conn.Read(make([]byte, 100)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v", err)
			}
		}
		if x := r.Report(); x.Total.Resets != 1 {
			t.Errorf("%+v", x)
		}
	})
	t.Run("close", func(t *testing.T) {
		_, p := start(t, "tcp", "packet ACK close 100%")
		a, b := tcpPair(t, p)
		write(t, a, ack, request)
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, ack) {
			t.Errorf("%x, %v", got, err)
		}
		write(t, b, request) // the other direction continues
		wantStream(t, a, request)
	})
	t.Run("partition", func(t *testing.T) {
		r, p := start(t, "tcp", "from 0 partition")
		a, b := tcpPair(t, p)
		write(t, a, request)
		write(t, b, ack)
		wantStream(t, a, ack)
		if err := b.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Read(make([]byte, 1)); n != 0 {
			t.Errorf("%d bytes came, %v", n, err)
		}
		if x := r.Report(); x.Total.Held != 1 {
			t.Errorf("%+v", x)
		}
		r.Close() // does not wait for held pieces
	})
	t.Run("rank is not there", func(t *testing.T) {
		r, p := start(t, "tcp")
		from, _ := p.Addrs(0)
		_, seen := p.Addrs(1)
		a, err := net.DialTCP("tcp4", &net.TCPAddr{IP: from.Addr().AsSlice()}, net.TCPAddrFromAddrPort(seen))
		if err == nil { // otherwise it was reset already
			defer a.Close()
			_, err = a.Read(make([]byte, 1))
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v", err)
		}
		if x := r.Report(); x.Failed != 1 {
			t.Errorf("%+v", x)
		}
	})
}

func TestAddressInUse(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		_, p := start(t, transport)
		if _, err := Listen(p, impair.Script{}); !errors.Is(err, syscall.EADDRINUSE) ||
			!strings.Contains(err.Error(), "rank 0 cannot listen on "+transport) {
			t.Errorf("%s: %v", transport, err)
		}
	}
}

// oneByOne is a reader that returns one byte at a time.
type oneByOne struct{ io.Reader }

func (r oneByOne) Read(b []byte) (int, error) { return r.Reader.Read(b[:min(len(b), 1)]) }

func TestSplitter(t *testing.T) {
	packet := protocol.AppendExtended(nil, &protocol.ExtHeader{Type: protocol.Data, Session: 1, Length: 9},
		make([]byte, 9))
	empty := protocol.AppendExtended(nil, &protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt, Session: 1},
		nil)
	request, data := header(protocol.SendRequest, 0, 1, 5), header(protocol.Data, 0, 1, 2)
	tls := []byte{22, 3, 1, 2, 0}
	for _, tt := range []struct {
		name   string
		stream []byte
		kinds  string
	}{
		{"headers and payload", bytes.Join([][]byte{request, data, make([]byte, 8), request}, nil),
			"SEND_REQUEST DATA PAYLOAD SEND_REQUEST"},
		{"0 words", append(header(protocol.Data, 0, 1, 0), request...), "DATA SEND_REQUEST"},
		{"extended", bytes.Join([][]byte{empty, packet, empty}, nil), "ACK DATA ACK"},
		{"both", bytes.Join([][]byte{empty, request, packet}, nil), "ACK SEND_REQUEST DATA"},
		{"TLS", append(tls, make([]byte, 100)...), "PAYLOAD"},
		{"no header after one", append(bytes.Clone(request), make([]byte, 100)...), "SEND_REQUEST PAYLOAD"},
		{"ends in a header", append(bytes.Clone(request), request[:20]...), "SEND_REQUEST PAYLOAD"},
		{"ends in a packet", append(bytes.Clone(empty), packet[:85]...), "ACK PAYLOAD"},
		{"ends in payload", append(bytes.Clone(data), 1), "DATA PAYLOAD"},
		{"nothing", nil, ""},
	} {
		for _, r := range []io.Reader{bytes.NewReader(tt.stream), oneByOne{bytes.NewReader(tt.stream)}} {
			s := newSplitter(r)
			var all []byte
			var kinds []string
			for {
				kind, b, err := s.nextPiece()
				if err != nil {
					if err != io.EOF {
						t.Errorf("%s: %v", tt.name, err)
					}
					break
				}
				if name := kind.String(); name != "PAYLOAD" || len(kinds) == 0 || kinds[len(kinds)-1] != name {
					kinds = append(kinds, name)
				}
				all = append(all, b...)
			}
			if got := strings.Join(kinds, " "); got != tt.kinds || !bytes.Equal(all, tt.stream) {
				t.Errorf("%s: %s, want %s; %d of %d bytes", tt.name, got, tt.kinds, len(all), len(tt.stream))
			}
		}
	}
}
