package wireshark_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// noise returns n packets and corrupts most of them. It changes bytes, cuts off beginnings and ends, and duplicates,
// drops and reorders packets.
func noise(random *rand.Rand, n int, tcp bool) (packets []packet) {
	byte32 := func() byte { return byte(random.Uint32()) }
	for len(packets) < n {
		m := message()
		if random.IntN(2) == 0 {
			m = short()
		}
		for _, p := range m {
			p.payload = slices.Clone(p.payload)
			switch random.IntN(12) {
			case 0:
				p.payload[random.IntN(len(p.payload))] = byte32()
			case 1:
				p.payload = p.payload[:random.IntN(len(p.payload)+1)]
			case 2:
				p.payload = p.payload[random.IntN(len(p.payload)):]
			case 3:
				if len(p.payload) >= protocol.HeaderLen {
					p.payload[random.IntN(protocol.HeaderLen)] = byte32()
				}
			case 4:
				if len(p.payload) >= protocol.HeaderLen { // give the header any size, call, type and tag
					for i := 12; i < 19; i++ {
						p.payload[i] = byte32() >> random.IntN(9)
					}
				}
			case 5:
				p.at = time.Duration(random.IntN(200)) * millisecond
			case 6:
				p.src, p.dst = p.dst, p.src
			case 7:
				p.cut = random.IntN(len(p.payload) + 1)
			case 8:
				packets = append(packets, p)
			case 9:
				continue
			case 10:
				if len(packets) > 0 {
					packets[len(packets)-1], p = p, packets[len(packets)-1]
				}
			}
			if p.tcp = tcp; tcp {
				// Half of the segments begin in the middle of a packet.
				if at := random.IntN(len(p.payload) + 1); random.IntN(2) == 0 {
					first := p
					first.payload, p.payload = p.payload[:at], p.payload[at:]
					first.cut, p.cut = 0, 0
					packets = append(packets, first)
				}
			}
			p.quoted = !tcp && random.IntN(50) == 0
			p.cut = min(p.cut, len(p.payload))
			packets = append(packets, p)
		}
	}
	return packets
}

// Whatever the input, the script does not fail, and repeated queries yield the same result.
func TestNoise(t *testing.T) {
	t.Parallel()
	for seed, c := range []struct {
		name    string
		tcp     bool
		options []string
	}{
		{"udp", false, nil},
		{"udp, v0.9", false, v09},
		{"udp, small datagrams", false, []string{"-o", "zrlmpi.max_datagram:0", "-o", "zrlmpi.gap:0"}},
		{"tcp", true, nil},
		{"tcp, not put together", true, []string{"-o", "tcp.desegment_tcp_streams:false"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := write(t, noise(rand.New(rand.NewPCG(uint64(seed), 1)), 1500, c.tcp)...)
			frames := dissect(t, file, c.options...)
			if err := differences(frames, dissect(t, file, append(c.options, "-2")...), "zrlmpi.ack_in",
				"zrlmpi.clear_in"); err != nil {
				t.Errorf("two passes make a difference: %v", err)
			}
			for n, text := range strings.Split(tshark(t, append(c.options, "-r", file, "-2", "-V")...), "\n") {
				if hasLuaError(text) {
					t.Fatalf("line %d: %s", n+1, text)
				}
			}
			seen := map[string]int{}
			for _, f := range frames {
				for _, name := range f.experts() {
					seen[name]++
				}
			}
			if len(seen) < 5 {
				t.Errorf("the noise was too little: %v", seen)
			}
		})
	}
}
