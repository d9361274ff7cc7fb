package xdp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestProgram runs the program on frames in memory. Without a socket in the map, a frame that would be redirected is
// counted and left to the kernel.
func TestProgram(t *testing.T) {
	for _, stamps := range []bool{false, true} {
		testProgram(t, stamps)
	}
}

func testProgram(t *testing.T, stamps bool) {
	needs.Root(t, "the BPF program", "may load it")
	p, err := newProgram(stamps)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for slot, pair := range pairs {
		if err := p.slots.Put(newSlotKey(pair.to), uint32(slot)); err != nil {
			t.Fatal(err)
		}
	}
	passed := func() (n uint64) {
		for slot := range pairs {
			var value uint64
			if err := p.passed.Lookup(uint32(slot), &value); err != nil {
				t.Fatal(err)
			}
			n += value
		}
		return n
	}
	for _, pair := range pairs {
		fragment, total := ethernetLen+6, ethernetLen+2
		if pair.to.Addr().Is6() {
			total = ethernetLen + 4
		}
		for _, test := range []struct {
			name   string
			to     netip.AddrPort
			change func(frame []byte) []byte
			taken  bool
		}{
			{"a datagram", pair.to, nil, true},
			{"another port", netip.AddrPortFrom(pair.to.Addr(), 53), nil, false},
			{"another address", netip.AddrPortFrom(pair.to.Addr().Next(), pair.to.Port()), nil, false},
			{"ARP", pair.to, func(b []byte) []byte { b[12], b[13] = 8, 6; return b }, false},
			{"a fragment", pair.to, func(b []byte) []byte {
				if pair.to.Addr().Is4() {
					b[fragment] = 0x20
				} else {
					b[ethernetLen+6] = 44
				}
				return b
			}, false},
			{"a longer IP packet than datagram", pair.to, func(b []byte) []byte { b[total+1] += 8; return b }, false},
			{"a cut frame", pair.to, func(b []byte) []byte { return b[:40] }, false},
		} {
			frame := make([]byte, 256)
			h := newHeaders(pair.from, test.to, hostMAC, peerMAC)
			frame = frame[:h.build(frame, make([]byte, 32))]
			if test.change != nil {
				frame = test.change(frame)
			}
			before := passed()
			result, _, err := p.Test(frame)
			if err != nil {
				t.Fatalf("%v, %s: %v", pair.to, test.name, err)
			}
			if taken := passed() != before; result != xdpPass || taken != test.taken {
				t.Errorf("%v, %s: result %d, taken %v; want %d, %v", pair.to, test.name, result, taken, xdpPass, test.taken)
			}
		}
	}
}

func TestSlotKey(t *testing.T) {
	k := newSlotKey(netip.MustParseAddrPort("10.9.0.1:2718"))
	if k[10] != 0xff || k[11] != 0xff || k[15] != 1 || binary.BigEndian.Uint16(k[16:]) != 2718 {
		t.Errorf("%x", k)
	}
}
