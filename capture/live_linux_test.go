package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// liveLoopback captures from the loopback interface. It skips the test without CAP_NET_RAW.
func liveLoopback(t *testing.T, ctx context.Context, o Options) Source {
	t.Helper()
	s, err := o.OpenLive(ctx, "lo")
	if errors.Is(err, fs.ErrPermission) {
		if !strings.Contains(err.Error(), "CAP_NET_RAW") {
			t.Errorf("error does not name the capability: %v", err)
		}
		t.Skipf("LIVE CAPTURE IS NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// chatter is two UDP sockets and a TCP connection on loopback addresses that no other test uses.
type chatter struct {
	a, b     *net.UDPConn
	from, to netip.AddrPort
}

func newChatter(t *testing.T) *chatter {
	t.Helper()
	listen := func(ip string) *net.UDPConn {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(ip)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := &chatter{a: listen("127.0.61.1"), b: listen("127.0.61.2")}
	addr := func(u *net.UDPConn) netip.AddrPort { return u.LocalAddr().(*net.UDPAddr).AddrPort() }
	c.from, c.to = addr(c.a), addr(c.b)
	return c
}

func (c *chatter) send(t *testing.T, payload string) {
	t.Helper()
	if _, err := c.a.WriteToUDPAddrPort([]byte(payload), c.to); err != nil {
		t.Fatal(err)
	}
}

func TestLiveUDP(t *testing.T) {
	c := newChatter(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := liveLoopback(t, ctx, Options{Ports: []uint16{c.to.Port()}})
	before := time.Now()
	sent := []string{"SEND_REQUEST", "", strings.Repeat("x", 40000)}
	for _, p := range sent {
		c.send(t, p)
	}
	var u pcapng.Unit
	for i, p := range sent {
		for {
			if err := s.Next(&u); err != nil {
				t.Fatal(err)
			}
			if u.Src == c.from {
				break
			}
		}
		if u.Dst != c.to || u.Proto != pcapng.UDP || string(u.Data) != p || u.Truncated != 0 {
			t.Errorf("datagram %d: %v %v %d bytes", i, u.Src, u.Dst, len(u.Data))
		}
		if d := u.Time.Sub(before); d < -time.Second || d > time.Minute {
			t.Errorf("datagram %d is of %v, sent at %v", i, u.Time, before)
		}
	}
	if stats := s.Stats(); stats.Packets < 3 || stats.Skipped[SkipKernelDrops] != 0 {
		t.Errorf("%+v", stats)
	}
	// Each packet was seen once, so the next packet must be the next one sent.
	c.send(t, "again")
	for u.Src = c.to; u.Src != c.from; {
		if err := s.Next(&u); err != nil {
			t.Fatal(err)
		}
	}
	if string(u.Data) != "again" {
		t.Errorf("%d bytes came twice", len(u.Data))
	}
	cancel()
	if err := s.Next(&u); err != io.EOF {
		t.Errorf("after the context's end: %v", err)
	}
}

func TestLiveTCP(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.61.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := l.Addr().(*net.TCPAddr).AddrPort()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := liveLoopback(t, ctx, Options{Ports: []uint16{to.Port()}})
	conn, err := net.Dial("tcp4", to.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := pattern(300000)
	go func() {
		peer, err := l.Accept()
		if err != nil {
			return
		}
		defer peer.Close()
		io.Copy(io.Discard, peer)
	}()
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	var got []byte
	var restarts []bool
	var u pcapng.Unit
	for len(got) < len(sent) {
		if err := s.Next(&u); err != nil {
			t.Fatal(err)
		}
		if u.Dst != to {
			continue
		}
		if u.Gap != 0 || u.Truncated != 0 {
			t.Fatalf("gap %d, truncated %d, skipped %v", u.Gap, u.Truncated, s.Stats().Skipped)
		}
		got = append(got, u.Data...)
		restarts = append(restarts, u.Restart)
	}
	if !bytes.Equal(got, sent) || !restarts[0] || slices.Contains(restarts[1:], true) {
		t.Errorf("%d bytes of %d, restarts %v", len(got), len(sent), restarts)
	}
}

// A pending Next returns when the context is done, and after Close.
func TestLiveEnd(t *testing.T) {
	for name, end := range map[string]func(context.CancelFunc, Source){
		"context": func(cancel context.CancelFunc, _ Source) { cancel() },
		"close":   func(_ context.CancelFunc, s Source) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChatter(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := liveLoopback(t, ctx, Options{Ports: []uint16{c.to.Port()}})
			started, ended := make(chan struct{}), make(chan error)
			go func() {
				var u pcapng.Unit
				for s.Next(&u) == nil && u.Src != c.from {
				}
				close(started)
				var err error
				for err == nil {
					err = s.Next(&u)
				}
				ended <- err
			}()
			c.send(t, "hello")
			<-started // and has called Next again, or is about to
			end(cancel, s)
			if err := <-ended; err != io.EOF {
				t.Errorf("Next ended with %v", err)
			}
			s.Stats() // also when closed
		})
	}
}

func TestLiveNoSuchInterface(t *testing.T) {
	_, err := Options{}.OpenLive(t.Context(), "nonesuch0")
	if err == nil || !strings.Contains(err.Error(), "nonesuch0") {
		t.Errorf("%v", err)
	}
}
