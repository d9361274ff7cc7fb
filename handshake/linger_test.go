package handshake_test

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// A rank that has received a message may exit as soon as the peer can no longer need the ACK.
func TestLingerUntil(t *testing.T) {
	fpga := hostTo(1, handshake.FPGAPeer(1))
	software := hostTo(1, handshake.SoftwarePeer())
	reliable, standin, sameHost := software, software, software
	sameHost.SameHost = true
	reliable.Reliable = true
	standin.Quirks.AckOnce = true
	received := func(b *bench) {
		b.postRecv(10)
		b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, pattern(10, 1))
	}
	again := func(times ...int) func(*bench) {
		return func(b *bench) {
			received(b)
			for _, at := range times {
				b.at(time.Duration(at)*ms).gets(dat, sInt, pattern(10, 1))
			}
		}
	}
	for _, tt := range []struct {
		name string
		cfg  handshake.Config
		do   func(b *bench)
		want time.Duration // 0: it may end at once
	}{
		{"nothing received", software, func(*bench) {}, 0},
		{"received from software", software, received, 150 * ms},
		{"received from a CPU rank", hostTo(1, handshake.CPUPeer()), received, 150 * ms},
		{"received from an FPGA, which waits longer", fpga, received, 275 * ms},
		{"over a reliable transport", reliable, received, 0},
		{"from a rank of the same host", sameHost, received, 0},
		{"from a rank of the same host, which retransmits", sameHost, again(100), (100 + 1100 + 50) * ms},
		{"from a rank of the same host, a CLEAR_TO_SEND was lost before", sameHost, func(b *bench) {
			b.postRecv(10)
			b.at(0).gets(sreq, sInt, nil)
			b.at(100*ms).gets(sreq, sInt, nil)
			b.gets(dat, sInt, pattern(10, 1))
		}, 250 * ms},
		{"by a stand-in, which acknowledges once", standin, received, 0},
		{"retransmitted once", software, again(100), (100 + 1100 + 50) * ms},
		{"retransmitted twice", software, again(100, 1200), (1200 + 2100 + 50) * ms},
		{"retransmitted as often as it is", software, again(100, 1200, 3300), 0},
		{"the peer asks for the next message", software,
			func(b *bench) { received(b); b.at(1*ms).gets(sreq, sInt, nil) }, 0},
		{"an FPGA has received since, so it is in no send", fpga, func(b *bench) {
			received(b)
			b.postSend(pattern(10, 2))
			b.at(1 * ms)
			b.at(2*ms).gets(clr, rInt, nil).gets(ack, rInt, nil)
		}, 0},
		{"software may do both at once", software, func(b *bench) {
			received(b)
			b.postSend(pattern(10, 2))
			b.at(1 * ms)
			b.at(2*ms).gets(clr, rInt, nil).gets(ack, rInt, nil)
		}, 150 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.cfg)
			tt.do(b)
			if got, ok := b.pair.LingerUntil(); got != tt.want || ok != (tt.want > 0) {
				t.Errorf("%v, %v; want %v", got, ok, tt.want)
			}
		})
	}
}
