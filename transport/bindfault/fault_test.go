package bindfault

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

func testMap(t *testing.T, addrs ...string) *rankmap.Map {
	t.Helper()
	var entries []rankmap.Entry
	for rank, addr := range addrs {
		entries = append(entries,
			rankmap.Entry{Rank: rank, Addr: netip.MustParseAddrPort(addr), Kind: rankmap.Software})
	}
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestText(t *testing.T) {
	m := testMap(t, "192.0.2.77:600", "127.0.0.1:600")
	for _, tt := range []struct {
		name  string
		fault ListenError
		want  []string
	}{
		{"port taken", ListenError{Holder: &Process{41, "other"}, Err: syscall.EADDRINUSE},
			[]string{"rank 0 cannot listen on udp 192.0.2.77:600", "process 41 (other) holds the port", "stop it"}},
		{"by nobody we see", ListenError{Err: syscall.EADDRINUSE}, []string{"ss -lnp --udp 'sport = :600'"}},
		{"by ourselves", ListenError{Holder: &Process{PID: os.Getpid()}, Err: syscall.EADDRINUSE},
			[]string{"this process holds the port already"}},
		{"forbidden", ListenError{Err: syscall.EACCES}, []string{"permission denied", "CAP_NET_BIND_SERVICE"}},
		{"other", ListenError{Err: errors.New("it rains")}, []string{"600: it rains"}},
		{"not here", *New("udp", 0, m, syscall.EADDRNOTAVAIL),
			[]string{"this machine does not have that address", "127.0.0.1 (rank 1)", "shifted",
				"rank 0 is to run on another machine"}},
		{"no addresses", ListenError{Err: syscall.EADDRNOTAVAIL}, []string{"address: the rank map may be shifted"}},
	} {
		tt.fault.Network, tt.fault.Addr = "udp", m.Addr(0)
		for _, want := range tt.want {
			if !strings.Contains(tt.fault.Error(), want) {
				t.Errorf("%s: %q does not say %q", tt.name, tt.fault.Error(), want)
			}
		}
		if !errors.Is(&tt.fault, tt.fault.Err) {
			t.Errorf("%s: the cause is lost", tt.name)
		}
	}
}

func TestManyAddresses(t *testing.T) {
	f := ListenError{Err: syscall.EADDRNOTAVAIL}
	for range 40 {
		f.LocalAddrs = append(f.LocalAddrs, Address{netip.MustParseAddr("10.9.9.9"), rankmap.NoRank})
	}
	if text := f.Error(); strings.Count(text, "10.9.9.9") != maxListed || !strings.Contains(text, "and 24 more") {
		t.Error(text)
	}
}

// TestRealFaults checks faults reported by the system.
func TestRealFaults(t *testing.T) {
	taken, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := testMap(t, taken.LocalAddr().String(), "192.0.2.77:6000")
	_, err = net.ListenPacket("udp4", m.Addr(0).String())
	if f := New("udp", 0, m, err); !errors.Is(f, syscall.EADDRINUSE) || !strings.Contains(f.Error(), "holds the port") {
		t.Error(f.Error())
	}
	_, err = net.ListenPacket("udp4", m.Addr(1).String())
	if f := New("udp", 1, m, err); len(f.LocalAddrs) == 0 {
		t.Errorf("%v lists no addresses", f.Error())
	}
}
