package extended

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestForeignVersion: a packet of another version is dropped, and answered by a HELLO so that its sender notices as
// well, but no more often than HELLO is retransmitted: two ranks of different versions do not answer each other
// endlessly.
func TestForeignVersion(t *testing.T) {
	c := New(Config{Local: 0, Remote: 1, Seed: 1})
	h := protocol.ExtHeader{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello, Session: 7}
	packet := make([]byte, protocol.ExtHeaderLen)
	protocol.PutExtended(packet, &h, nil)
	packet[protocol.VersionOffset] = 0xE1
	if c.ForeignVersion() != 0 {
		t.Error("a version before any packet")
	}
	hellos := 0
	for now := Instant(0); now < 10*time.Second; now += 100 * time.Millisecond {
		for _, a := range c.Packet(now, packet, nil) {
			if a.Kind != Drop || a.Reason != ReasonReserved {
				t.Errorf("%v, %v", a.Kind, a.Reason)
			}
		}
		for _, a := range c.Flush(now, nil) {
			if a.Kind != TransmitAck || a.Header.Flags&protocol.FlagHello == 0 || a.Header.PeerSession != 0 {
				t.Errorf("%v %v", a.Kind, &a.Header)
			}
			hellos++
		}
		if at, ok := c.Deadline(); ok {
			t.Errorf("a deadline at %v", at)
		}
	}
	if hellos < 8 || hellos > 16 {
		t.Errorf("%d HELLOs in 10 s", hellos)
	}
	c.Packet(20*time.Second, packet, nil)
	answered := len(c.Flush(20*time.Second, nil))
	c.Packet(20*time.Second, packet, nil)
	if again := len(c.Flush(20*time.Second, nil)); answered != 1 || again != 0 {
		t.Errorf("%d HELLOs, and %d at the same time", answered, again)
	}
	if v := c.ForeignVersion(); v != 0xE1 {
		t.Errorf("version %#x", v)
	}
}
