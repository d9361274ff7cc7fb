package capture

import (
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

// TestFaultsOfLayers decodes packets that the decoder reads but the layers of gopacket 1.1.19 do not. If the test fails
// with a newer version of gopacket, the bug is fixed in that version.
func TestFaultsOfLayers(t *testing.T) {
	long := capturetest.Frame(capturetest.SLL, capturetest.UDP(addrA, addrB, []byte("long")))
	long[4], long[5] = 0xff, 0xfc // the length of the sender's address
	offload6 := capturetest.UDP(addrA6, addrB6, []byte("offload"))
	offload6[4], offload6[5] = 0, 0 // the card fills in the length
	offload := capturetest.UDP(addrA, addrB, make([]byte, 65_000))
	offload = append(offload, make([]byte, 1000)...)
	for _, at := range []int{2, 3, 20 + 4, 20 + 5} {
		offload[at] = 0
	}
	for name, c := range map[string]struct {
		link   int
		packet []byte
		length int
		works  func() bool
	}{
		"address of 65532 bytes": {capturetest.SLL, long, 4, func() bool {
			defer func() { _ = recover() }()
			return new(layers.LinuxSLL).DecodeFromBytes(long, gopacket.NilDecodeFeedback) == nil
		}},
		"IPv6 of no length": {capturetest.Raw, offload6, 7, func() bool {
			return new(layers.IPv6).DecodeFromBytes(offload6, gopacket.NilDecodeFeedback) == nil
		}},
		"IPv4 of no length, over 64 KiB": {capturetest.Raw, offload, 66_000, func() bool {
			ip := new(layers.IPv4)
			return ip.DecodeFromBytes(offload, gopacket.NilDecodeFeedback) == nil && len(ip.Payload) == len(offload)-20
		}},
	} {
		units, reason := one(t, Options{}, c.link, c.packet, 0)
		if len(units) != 1 || len(units[0].Data) != c.length {
			t.Errorf("%s: %d units, %s", name, len(units), reason)
		}
		if c.works() {
			t.Errorf("%s: gopacket reads it", name)
		}
	}
}
