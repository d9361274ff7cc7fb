package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func transportAddr(conn net.Conn) netip.AddrPort { return conn.LocalAddr().(*net.TCPAddr).AddrPort() }

// wantLast waits until e's last connection with peer ends with an error that contains all texts.
func wantLast(t *testing.T, e *transporttest.End, peer int, texts ...string) {
	t.Helper()
	connected, last := e.Transport.(*Conn).Connection(peer)
	if connected || last == nil {
		t.Fatalf("connected %v, last %v", connected, last)
	}
	for _, text := range texts {
		if !strings.Contains(last.Error(), text) {
			t.Errorf("%q does not say %q", last, text)
		}
	}
	if fault := e.Transport.(*Conn).TLSFault(peer); fault == nil || !errors.Is(last, fault) {
		t.Errorf("the fault is %v, the last error %v", fault, last)
	}
}

// TestRefusedDialers dials as rank 0 in every way that must be rejected.
func TestRefusedDialers(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	m := transporttest.Map(t, 2)
	ip := m.Addr(0).Addr()
	high := start(t, Config{Rank: 1, Map: m, TLS: a.issue(t, valid(m.Addr(1).Addr())),
		HandshakeTimeout: transporttest.Timeout})
	good := a.issue(t, valid(ip)).peerConfig(m.Addr(1).Addr())
	with := func(change func(*tls.Config)) *tls.Config {
		cfg := good.Clone()
		change(cfg)
		return cfg
	}
	shows := func(s *TLS) *tls.Config {
		return with(func(cfg *tls.Config) { cfg.Certificates = []tls.Certificate{s.Certificate} })
	}
	for name, tt := range map[string]struct {
		cfg   *tls.Config // nil: plain TCP
		sends []byte
		text  string
	}{
		"another authority": {shows(other.issue(t, valid(ip))), nil,
			"the certificate of the peer must be signed by the authority"},
		"another IP": {shows(a.issue(t, valid(m.Addr(1).Addr()))), nil,
			"not " + ip.String() + ": the certificate of the peer must contain"},
		"expired": {shows(a.issue(t, expired(ip))), nil,
			"renew the certificate of the peer, or set the clock"},
		"only for servers": {shows(a.issue(t, forServers(ip))), nil, "must be for serverAuth and clientAuth"},
		"no certificate":   {with(func(cfg *tls.Config) { cfg.Certificates = nil }), nil, "certificate"},
		"TLS 1.2": {with(func(cfg *tls.Config) { cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }),
			nil,
			"client offered only unsupported versions"},
		"plain": {nil, request(0, 1), "received a ZRLMPI packet instead of a TLS record: the peer does not use TLS: " +
			"configure tls on both, or on neither"},
		"another protocol": {nil, []byte("GET / HTTP/1.1\r\n\r\n"),
			"received 47 45 54 20 2f, which begins neither a TLS record nor a ZRLMPI packet"},
	} {
		conn := net.Conn(dial(t, ip, m.Addr(1)))
		if tt.cfg != nil {
			conn = tls.Client(conn, tt.cfg)
			// The error occurs here or when reading, depending on timing.
			conn.SetDeadline(time.Now().Add(transporttest.Timeout))
			_ = conn.(*tls.Conn).Handshake()
		}
		write2(conn, tt.sends)
		if a := want(t, high, mpe.RxBroken, 0); a.SourceAddr != transportAddr(conn) ||
			!strings.Contains(string(a.Bytes), tt.text) {
			t.Errorf("%s: from %v: %s", name, a.SourceAddr, a.Bytes)
		}
		wantLast(t, high, 0, "tls with "+transportAddr(conn).String(), tt.text)
		var tlsErr *TLSError
		if _, last := high.Transport.(*Conn).Connection(0); !errors.As(last, &tlsErr) {
			t.Errorf("%s: %v", name, last)
		}
		if tt.cfg == nil {
			alert := make([]byte, 7)
			readFull(t, conn, alert)
			if !isTLSRecord(alert) {
				t.Errorf("%s: the answer is %x", name, alert)
			}
		}
		wantClosed(t, conn)
		if err := high.SendHeader(0, request(1, 0)); !errors.Is(err, ErrNotConnected) ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: sending then gives %v", name, err)
		}
	}
	// After all these attempts, a valid dialer must be accepted.
	conn := tls.Client(dial(t, ip, m.Addr(1)), good)
	write(t, conn, request(0, 1))
	want(t, high, mpe.RxConnected, 0)
	want(t, high, mpe.RxHeader, 0)
	// Another invalid attempt must not disturb its connection.
	bad := tls.Client(dial(t, ip, m.Addr(1)), shows(other.issue(t, valid(ip))))
	_ = bad.Handshake()
	want(t, high, mpe.RxBroken, 0)
	write(t, conn, request(0, 1))
	want(t, high, mpe.RxHeader, 0)
	if connected, last := high.Transport.(*Conn).Connection(0); !connected || last != nil {
		t.Errorf("connected %v, %v", connected, last)
	}
}

// write2 writes b, if it is not empty, and ignores errors.
func write2(conn net.Conn, b []byte) {
	if len(b) > 0 {
		_, _ = conn.Write(b)
	}
}

// TestRefusedAcceptors makes rank 0 dial a rank 1 that it must reject, again and again until rank 1 is valid.
func TestRefusedAcceptors(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	m := transporttest.Map(t, 2)
	ip := m.Addr(1).Addr()
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(m.Addr(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	low := start(t, Config{Rank: 0, Map: m, TLS: a.issue(t, valid(m.Addr(0).Addr())),
		HandshakeTimeout: transporttest.Timeout})
	// accept answers the next dial as rank 1. It uses TLS with cfg, or sends b in plain text if cfg is nil.
	accept := func(cfg *tls.Config, b []byte) net.Conn {
		t.Helper()
		ln.SetDeadline(time.Now().Add(transporttest.Timeout))
		conn, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(transporttest.Timeout))
		if cfg == nil {
			write2(conn, b)
			return conn
		}
		server := tls.Server(conn, cfg)
		_ = server.HandshakeContext(context.Background())
		return server
	}
	answers := func(s *TLS) *tls.Config {
		s.Authority = a.pool()
		return s.peerConfig(m.Addr(0).Addr())
	}
	old := answers(a.issue(t, valid(ip)))
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for name, tt := range map[string]struct {
		cfg  *tls.Config
		says []byte
		text string
	}{
		"another authority": {answers(other.issue(t, valid(ip))), nil,
			"the certificate of the peer must be signed by the authority"},
		"another IP": {answers(a.issue(t, valid(m.Addr(0).Addr()))), nil,
			"not " + ip.String() + ": the certificate of the peer must contain"},
		"expired": {answers(a.issue(t, expired(ip))), nil, "renew the certificate of the peer, or set the clock"},
		"TLS 1.2": {old, nil, "the peer rejected the connection"},
		"plain":   {nil, request(1, 0), "the peer does not use TLS: configure tls on both, or on neither"},
	} {
		conn := accept(tt.cfg, tt.says)
		want(t, low, mpe.RxBroken, 1)
		wantLast(t, low, 1, "tls with "+m.Addr(1).String(), tt.text)
		conn.Close()
		if t.Failed() {
			t.Fatal(name)
		}
	}
	// It is not a TLS fault if the peer closes the connection: nothing is reported, but the reason is recorded.
	accept(nil, nil).Close()
	conn := accept(answers(a.issue(t, valid(ip))), nil)
	want(t, low, mpe.RxConnected, 1)
	write(t, conn, request(1, 0))
	want(t, low, mpe.RxHeader, 1)
}

// TestSilentPeers checks that a connection is closed if its peer takes no part in the handshake, on both the
// accepting and the dialing side.
func TestSilentPeers(t *testing.T) {
	a := newAuthority(t)
	m := transporttest.Map(t, 3)
	ln, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(m.Addr(2)))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	middle := start(t, Config{Rank: 1, Map: m, TLS: a.issue(t, valid(m.Addr(1).Addr())),
		HandshakeTimeout: 50 * time.Millisecond,
		Backoff:          func(int) time.Duration { return time.Hour }})
	want(t, middle, mpe.RxBroken, 2) // no accept yet
	wantLast(t, middle, 2, "tls with "+m.Addr(2).String(),
		"no answer to the handshake: does the peer have tls configured?")
	conn := dial(t, m.Addr(0).Addr(), m.Addr(1))
	want(t, middle, mpe.RxBroken, 0)
	wantLast(t, middle, 0, "tls with "+transportAddr(conn).String(),
		"no answer to the handshake: does the peer have tls configured?")
	alert := make([]byte, 7)
	readFull(t, conn, alert)
	if !isTLSRecord(alert) {
		t.Errorf("the answer is %x", alert)
	}
	wantClosed(t, conn)
}

// TestRefusedByTheAcceptor checks that the dialer learns of its rejection when it reads, and reports it.
func TestRefusedByTheAcceptor(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	m := transporttest.Map(t, 2)
	secure := other.issue(t, valid(m.Addr(0).Addr()))
	secure.Authority.AddCert(a.cert)
	high := start(t, Config{Rank: 1, Map: m, TLS: a.issue(t, valid(m.Addr(1).Addr()))})
	low := start(t, Config{Rank: 0, Map: m, TLS: secure, Backoff: func(int) time.Duration { return time.Hour }})
	want(t, high, mpe.RxBroken, 0)
	want(t, low, mpe.RxConnected, 1)
	want(t, low, mpe.RxBroken, 1)
	wantLast(t, high, 0, "the certificate of the peer must be signed")
	wantLast(t, low, 1, "remote error: tls: ", "the peer rejected the connection: see its log")
}

// TestTLSAndPlain uses TLS on only one of two ranks. Both must report the mismatch.
func TestTLSAndPlain(t *testing.T) {
	a := newAuthority(t)
	never := func(int) time.Duration { return time.Hour }
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		for secured := range 2 {
			m := transporttest.Map(t, 2)
			var ends [2]*transporttest.End
			for rank := range ends {
				rank = 1 - rank // the acceptor first
				cfg := Config{Rank: rank, Map: m, Backoff: never, HandshakeTimeout: transporttest.Timeout,
					Profile: func(int) protocol.Profile { return profile }}
				if secured == 1 { // waits for the first data of a peer that sends none
					cfg.HandshakeTimeout = 50 * time.Millisecond
				}
				if rank == secured {
					cfg.TLS = a.issue(t, valid(m.Addr(rank).Addr()))
				}
				ends[rank] = start(t, cfg)
			}
			plain := 1 - secured
			want(t, ends[plain], mpe.RxConnected, secured)
			text := "received a TLS record instead of a ZRLMPI packet: the peer uses TLS and this rank does not: " +
				"configure tls on both, or on neither"
			if a := want(t, ends[plain], mpe.RxBroken, secured); !strings.Contains(string(a.Bytes), text) {
				t.Errorf("%v: %s", profile, a.Bytes)
			}
			wantLast(t, ends[plain], secured, text)
			if secured == 1 { // a dialer whose connection is closed does not know the reason
				want(t, ends[secured], mpe.RxBroken, plain)
			}
			for deadline := time.Now().Add(transporttest.Timeout); ; {
				if _, last := ends[secured].Transport.(*Conn).Connection(plain); last != nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the reason is not reported")
				}
			}
			wantLast(t, ends[secured], plain, "does the peer have tls configured?")
		}
	}
}

// TestSilentConnectionsDoNotBlockOthers opens connections from a peer's address that send nothing, forever.
func TestSilentConnectionsDoNotBlockOthers(t *testing.T) {
	a := newAuthority(t)
	m := transporttest.Map(t, 3)
	cfg := func(rank int) Config {
		return Config{Rank: rank, Map: m, TLS: a.issue(t, valid(m.Addr(rank).Addr())), HandshakeTimeout: time.Hour}
	}
	high := start(t, cfg(2))
	var silent []net.Conn
	for range maxHandshakes + 3 {
		silent = append(silent, dial(t, m.Addr(0).Addr(), m.Addr(2)))
	}
	for _, conn := range silent[:3] {
		wantClosed(t, conn)
	}
	// Neither the rank at that address nor another rank may be kept out.
	for _, rank := range []int{0, 1} {
		low := start(t, cfg(rank))
		want(t, high, mpe.RxConnected, rank)
		if err := low.SendHeader(2, request(rank, 2)); err != nil {
			// The dialer may be connected slightly later than the acceptor.
			want(t, low, mpe.RxConnected, 2)
			if err := low.SendHeader(2, request(rank, 2)); err != nil {
				t.Fatal(err)
			}
		}
		want(t, high, mpe.RxHeader, rank)
		low.Close()
	}
	// Close must not wait for these connections either.
	high.Close()
	for _, conn := range silent {
		wantClosed(t, conn)
	}
}
