package extended

import (
	"reflect"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// PacketChecked accepts the same packets as PacketParts, and checks everything but the checksum.
func TestPacketChecked(t *testing.T) {
	packet := func(dst, src uint32) []byte {
		payload := []byte("eager")
		h := protocol.ExtHeader{
			Dst: dst, Src: src, Type: protocol.Data, Call: protocol.SendInt,
			Flags:   protocol.FlagEager | protocol.FlagHello,
			Session: 7, Number: 1, Acknowledged: 1, Message: 1, Length: uint32(len(payload)),
		}
		var header [protocol.ExtHeaderLen]byte
		protocol.PutExtended(header[:], &h, payload)
		return append(header[:], payload...)
	}
	for name, p := range map[string][]byte{
		"ours": packet(0, 1), "for another": packet(2, 1), "from another": packet(0, 2),
	} {
		one, two := New(Config{Local: 0, Remote: 1, Seed: 1}), New(Config{Local: 0, Remote: 1, Seed: 1})
		want, got := one.Packet(5, p, nil), two.PacketChecked(5, p[:protocol.ExtHeaderLen], p[protocol.ExtHeaderLen:], nil)
		if !reflect.DeepEqual(got, want) || one.Stats() != two.Stats() {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if taken := one.Stats().PacketsReceived[protocol.Data] == 1; taken != (name == "ours") {
			t.Errorf("%s: %v", name, want)
		}
	}
	bad := packet(0, 1)
	bad[protocol.ExtHeaderLen] ^= 1
	if acts := New(Config{Local: 0, Remote: 1}).Packet(5, bad, nil); len(acts) != 1 ||
		acts[0].Reason != ReasonChecksum {
		t.Errorf("a flipped bit: %v", acts)
	}
}
