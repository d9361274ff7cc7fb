package integration_test

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// faults are the odds of what an impaired transport does to a packet.
type faults struct {
	lose, double, delay, flip float64
}

// impaired is a real transport whose packets are lost, duplicated, reordered and
// corrupted before they reach the network.
type impaired struct {
	mpe.PacketTransport
	faults

	mu     sync.Mutex
	rng    *rand.Rand
	late   []latePacket
	counts struct{ sent, lost, doubled, delayed, flipped int }
}

// latePacket is sent after so many others.
type latePacket struct {
	after int
	mpe.Packet
}

func impair(tr mpe.PacketTransport, seed uint64, f faults) *impaired {
	return &impaired{PacketTransport: tr, faults: f, rng: rand.New(rand.NewPCG(seed, 5))}
}

// SendPackets sends what is left of the packets, and reports that all went.
func (im *impaired) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	var out []mpe.Packet
	for _, p := range packets {
		im.counts.sent++
		for i := 0; i < len(im.late); i++ {
			if im.late[i].after--; im.late[i].after <= 0 {
				out = append(out, im.late[i].Packet)
				im.late = append(im.late[:i], im.late[i+1:]...)
				i--
			}
		}
		switch x := im.rng.Float64(); {
		case x < im.lose:
			im.counts.lost++
			continue
		case x < im.lose+im.double:
			im.counts.doubled++
			out = append(out, p)
		case x < im.lose+im.double+im.delay:
			im.counts.delayed++
			p.Payload = bytes.Clone(p.Payload)
			im.late = append(im.late, latePacket{1 + im.rng.IntN(20), p})
			continue
		case x < im.lose+im.double+im.delay+im.flip:
			im.counts.flipped++
			p.Payload = bytes.Clone(p.Payload)
			if bit := im.rng.IntN(8 * (protocol.ExtHeaderLen + len(p.Payload))); bit < 8*protocol.ExtHeaderLen {
				p.Header[bit/8] ^= 1 << (bit % 8)
			} else {
				p.Payload[bit/8-protocol.ExtHeaderLen] ^= 1 << (bit % 8)
			}
		}
		out = append(out, p)
	}
	if len(out) > 0 {
		if _, err := im.PacketTransport.SendPackets(peer, out); err != nil {
			return 0, err
		}
	}
	return len(packets), nil
}
