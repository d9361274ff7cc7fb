package tcp

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// moving changes the rank map of an end.
func moving(t *testing.T, e *transporttest.End, m *rankmap.Map, credentials *TLS) {
	t.Helper()
	move, err := e.Transport.(*Conn).Prepare(m, credentials)
	if err != nil {
		t.Fatal(err)
	}
	move()
}

// waitLast waits until the connection to a peer ends with an error that contains text.
func waitLast(t *testing.T, e *transporttest.End, peer int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), transporttest.Timeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		connected, last := e.Transport.(*Conn).Connection(peer)
		if !connected && last != nil && strings.Contains(last.Error(), text) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("connected %v, the last error is %v, want %q", connected, last, text)
		}
	}
}

// connected waits for the connections to peers, in any order.
func connected(t *testing.T, e *transporttest.End, peers ...int) {
	t.Helper()
	got := make(map[int]bool)
	for range peers {
		a := e.Next(t)
		if a.Kind != mpe.RxConnected || !slices.Contains(peers, a.Peer) || got[a.Peer] {
			t.Fatalf("%+v arrived, want connections to %v", a, peers)
		}
		got[a.Peer] = true
	}
}

// TestMove checks that a peer that has moved is dialed at its new address immediately, and that a peer that
// dials is accepted only from its new address.
func TestMove(t *testing.T) {
	for name, profile := range map[string]protocol.Profile{"stream": protocol.CloudFPGA,
		"extended": protocol.Extended} {
		t.Run(name, func(t *testing.T) {
			m := transporttest.Map(t, 3)
			next := transporttest.MapOf(t, transporttest.FreeAddr(t), m.Addr(1), transporttest.FreeAddr(t))
			begin := func(rank int, m *rankmap.Map) *transporttest.End {
				return start(t, Config{Rank: rank, Map: m, Profile: func(int) protocol.Profile { return profile },
					Backoff: func(int) time.Duration { return time.Hour }})
			}
			// The lower rank dials only once an hour.
			two := begin(2, m)
			one := begin(1, m)
			connected(t, one, 2)
			zero := begin(0, m)
			connected(t, zero, 1, 2)
			connected(t, one, 0)
			connected(t, two, 0, 1)

			moved := begin(2, next)
			moving(t, one, next, nil)
			connected(t, one, 2)
			connected(t, moved, 1)
			waitLast(t, one, 0, errMoved.Error())

			from := begin(0, next)
			connected(t, one, 0)
			connected(t, moved, 0)
			connected(t, from, 1, 2)

			zero.Close()
			again := begin(0, m) // from an unknown address
			if a := one.Next(t); a.Kind != mpe.RxBroken || a.Peer != mpe.UnknownPeer {
				t.Errorf("%+v came from where rank 0 was", a)
			}
			again.Close()
		})
	}
}

// TestMoveWhileDialing checks that a pending dial of the old address is canceled.
func TestMoveWhileDialing(t *testing.T) {
	m := transporttest.MapOf(t, transporttest.FreeAddr(t), transporttest.FreeAddr(t))
	p := &peer{rank: 1, addr: m.Addr(1), addrChanged: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	if p.addrForDial(cancel) != m.Addr(1) {
		t.Fatal("it is dialed elsewhere")
	}
	p.setAddr(m.Addr(1), nil)
	if ctx.Err() != nil || len(p.addrChanged) != 0 {
		t.Error("it has not moved, and is dialed anew")
	}
	p.setAddr(m.Addr(0), nil)
	if ctx.Err() == nil || len(p.addrChanged) != 1 {
		t.Error("it has moved, and is not dialed anew")
	}
}

// TestNewCredentials checks that new credentials apply only to new connections, and that existing connections
// continue.
func TestNewCredentials(t *testing.T) {
	m := transporttest.Map(t, 3)
	old, now := newAuthority(t), newAuthority(t)
	issue := func(a *authority, rank int) *TLS { return a.issue(t, valid(m.Addr(rank).Addr())) }
	zero := start(t, Config{Rank: 0, Map: m, TLS: issue(old, 0)})
	one := start(t, Config{Rank: 1, Map: m, TLS: issue(old, 1)})
	want(t, zero, mpe.RxConnected, 1)
	want(t, one, mpe.RxConnected, 0)
	moving(t, zero, m, issue(now, 0))
	moving(t, one, m, issue(now, 1))
	two := start(t, Config{Rank: 2, Map: m, TLS: issue(now, 2)})
	want(t, zero, mpe.RxConnected, 2)
	want(t, one, mpe.RxConnected, 2)
	for range 2 {
		if a := two.Next(t); a.Kind != mpe.RxConnected {
			t.Errorf("%+v", a)
		}
	}
	if err := zero.SendHeader(1, request(0, 1)); err != nil {
		t.Error(err)
	}
	want(t, one, mpe.RxHeader, 0)
}

func TestMoveThatCannotBe(t *testing.T) {
	m := transporttest.Map(t, 3)
	authority := newAuthority(t)
	zero := start(t, Config{Rank: 0, Map: m, TLS: authority.issue(t, valid(m.Addr(0).Addr()))})
	var shared *SharedIPError
	var credential *CredentialError
	free := transporttest.FreeAddr(t)
	for _, tt := range []struct {
		name        string
		m           *rankmap.Map
		credentials *TLS
		as          any
	}{
		{"fewer ranks", transporttest.MapOf(t, m.Addr(0), m.Addr(1)), zero.Transport.(*Conn).cfg.TLS, nil},
		{"its address", transporttest.MapOf(t, free, m.Addr(1), m.Addr(2)), zero.Transport.(*Conn).cfg.TLS, nil},
		{"without TLS", m, nil, nil},
		{"one IP", transporttest.MapOf(t, m.Addr(0), free, netip.AddrPortFrom(free.Addr(), 1)),
			zero.Transport.(*Conn).cfg.TLS, &shared},
		{"another's certificate", m, authority.issue(t, valid(m.Addr(1).Addr())), &credential},
	} {
		_, err := zero.Transport.(*Conn).Prepare(tt.m, tt.credentials)
		if err == nil || tt.as != nil && !errors.As(err, tt.as) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
