package udp

import (
	"net/netip"
	"testing"
)

func TestSockaddr(t *testing.T) {
	for in, want := range map[string]string{
		"10.1.2.3:2718":            "10.1.2.3:2718",
		"[::ffff:10.1.2.3]:2718":   "10.1.2.3:2718",
		"[fd00::1:2]:40000":        "[fd00::1:2]:40000",
		"[fe80::1%lo]:1":           "[fe80::1]:1", // the zone is omitted
		"255.255.255.254:65535":    "255.255.255.254:65535",
		"[ff:ff00::ff:ff00]:65280": "[ff:ff00::ff:ff00]:65280",
	} {
		s, err := newSockaddr(netip.MustParseAddrPort(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.addrPort(s.len).String(); got != want {
			t.Errorf("%s came back as %s, want %s", in, got, want)
		}
		if got := s.addrPort(s.len - 1); got.IsValid() {
			t.Errorf("%s: an address cut short came back as %v", in, got)
		}
	}
	if _, err := newSockaddr(netip.MustParseAddrPort("[fe80::1%nosuch0]:1")); err == nil {
		t.Error("a zone that is not an interface is accepted")
	}
	s, _ := newSockaddr(netip.MustParseAddrPort("[fe80::1%lo]:1"))
	if [4]byte(s.raw[24:]) == [4]byte{} {
		t.Error("the zone did not become a scope")
	}
}
