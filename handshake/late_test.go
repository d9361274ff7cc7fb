package handshake_test

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestHandledLate: a host that was stopped, or that serves a thousand peers, handles a packet long after its arrival.
// Conclusions must not be drawn from the time at which it is handled, but only from timers that had expired when it
// arrived.
func TestHandledLate(t *testing.T) {
	fpga := hostTo(1, handshake.FPGAPeer(1))
	type exchange struct {
		// begin leads to the packet again, which proves something only if it came late.
		begin, again func(*bench)
		proved       []protocol.Type
	}
	for name, x := range map[string]exchange{
		"P6 SEND_REQUEST": {
			begin: func(b *bench) {
				b.postRecv(1)
				b.at(0).gets(sreq, sInt, nil).sends(clr)
			},
			again:  func(b *bench) { b.gets(sreq, sInt, nil) },
			proved: []protocol.Type{clr},
		},
		"P9 DATA": {
			begin: func(b *bench) {
				b.postRecv(1)
				b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1)).sends(clr, ack)
			},
			again:  func(b *bench) { b.gets(dat, sInt, pattern(1, 1)) },
			proved: []protocol.Type{ack},
		},
		"P14 CLEAR_TO_SEND": {
			begin: func(b *bench) {
				b.postSend(pattern(1000, 1))
				b.at(0).gets(clr, rInt, nil).sends(sreq, dat, 0, 0)
			},
			again:  func(b *bench) { b.gets(clr, rInt, nil) },
			proved: []protocol.Type{dat, 0, 0},
		},
		"P16 CLEAR_TO_SEND": {
			begin: func(b *bench) {
				b.postSend(pattern(1, 1))
				b.postRecv(1)
				b.at(0).gets(sreq, sInt, nil).gets(clr, rInt, nil).sends(sreq, clr)
			},
			again:  func(b *bench) { b.gets(clr, rInt, nil) },
			proved: []protocol.Type{dat},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const later = 900 * time.Millisecond
			for _, late := range []bool{true, false} {
				b := newBench(t, fpga)
				x.begin(b)
				if late {
					b.now = later // no timeout was handled
				} else {
					b.at(later)
				}
				if x.again(b); !late {
					b.at(later).sends(x.proved...)
					continue
				}
				// The timer expires now that the packet was handled.
				b.at(later).sends()
			}
		})
	}
}
