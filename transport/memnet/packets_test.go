package memnet_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func TestPackets(t *testing.T) {
	transporttest.RunPackets(t, transporttest.PacketKind{
		Pair: func(t *testing.T) (a, b *transporttest.End) {
			net := memnet.New(2)
			return transporttest.Start(t, net.Transport(0)), transporttest.Start(t, net.Transport(1))
		},
		MaxPayload: protocol.MaxDatagram - protocol.ExtHeaderLen,
	})
}

// TestHookOnPackets loses one packet of a list, duplicates another, reorders a third and corrupts a fourth.
func TestHookOnPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(2)
		from, to := net.Transport(0), net.Transport(1)
		got, end := collect(to)
		net.SetHook(func(_, _ int, b []byte) []time.Duration {
			h, _, _ := protocol.ParseExtended(b)
			switch h.Number {
			case 1:
				return nil
			case 2:
				return []time.Duration{0, 0}
			case 3:
				return []time.Duration{time.Millisecond}
			case 5:
				b[len(b)-1] ^= 4
			}
			return []time.Duration{0}
		})
		var packets []mpe.Packet
		for number := range uint32(6) {
			packets = append(packets, transporttest.Packet(0, 1, number, 10))
		}
		kept := slices.Clone(packets[5].Payload)
		if n, err := from.SendPackets(1, packets); n != len(packets) || err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(packets[5].Payload, kept) {
			t.Error("the Hook changed the caller's own bytes")
		}
		wait(time.Second)
		synctest.Wait()
		var arrived []uint32
		var corrupt int
		for len(got) > 0 {
			h, _, defect := protocol.ParseExtended((<-got).Bytes)
			if !defect.OK() {
				corrupt++
				continue
			}
			arrived = append(arrived, h.Number)
		}
		if want := []uint32{0, 2, 2, 4, 3}; !slices.Equal(arrived, want) || corrupt != 1 {
			t.Errorf("%v arrived and %d corrupt, want %v and 1", arrived, corrupt, want)
		}
		to.Close()
		<-end
	})
}
