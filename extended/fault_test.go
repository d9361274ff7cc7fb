package extended

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Every fault is applied to every packet of every exchange. In each case, the messages are received, all sends end, no
// state is left, and neither the number of packets nor the time is much greater than without the fault.

// exchanges begin with ranks that do not know each other's sessions.
var exchanges = map[string]struct {
	cfg  Config
	post func(w *world, tr *[2]traffic)
}{
	"eager":            {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 8, 8, SendOp{}) }},
	"empty":            {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 0, 0, SendOp{}) }},
	"eager, long":      {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 4000, 4000, SendOp{}) }},
	"eager, no buffer": {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 4000, 2000, SendOp{}) }},
	"synchronous":      {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 8, 8, SendOp{Sync: true}) }},
	"rendezvous":       {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 17000, 17000, SendOp{}) }},
	"smaller buffer":   {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 20000, 3000, SendOp{}) }},
	"no buffer":        {post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 20000, 0, SendOp{}) }},
	"small window": {cfg: Config{Window: 2},
		post: func(w *world, tr *[2]traffic) { tr[0].post(w, 0, 17000, 17000, SendOp{}) }},
	"numbers go over": {cfg: Config{firstPacket: 1<<32 - 3, firstMessage: 1<<32 - 1}, post: postMany},
	"many":            {post: postMany},
	"little credit":   {cfg: Config{Messages: 1, EagerLimit: 100, EagerBytes: 100}, post: postMany},
	"ping-pong": {post: func(w *world, tr *[2]traffic) {
		tr[0].post(w, 0, 8, 8, SendOp{})
		w.at(5*time.Millisecond, 1, func() { tr[1].post(w, 1, 8, 8, SendOp{}) })
	}},
	"canceled": {post: func(w *world, tr *[2]traffic) {
		tr[0].sends = map[uint32][]*simSend{1: {w.nodes[0].send(pattern(20000, 5), SendOp{Tag: 1})}}
		w.at(5*time.Millisecond, 0, func() { w.nodes[0].cancel(1) })
	}},
	"canceled too late": {post: func(w *world, tr *[2]traffic) {
		tr[0].post(w, 0, 17000, 17000, SendOp{})
		w.at(50*time.Microsecond, 0, func() { w.nodes[0].cancel(1) })
	}},
}

func postMany(w *world, tr *[2]traffic) {
	for i := range 4 {
		tr[0].post(w, 0, 100*i, 100*i, SendOp{Tag: 1})
		tr[1].post(w, 1, 3000, 2000, SendOp{Tag: uint32(i)})
	}
	tr[0].post(w, 0, 17000, 17000, SendOp{Tag: 2})
}

// post posts a send and its receive.
func (tr *traffic) post(w *world, from, n, room int, op SendOp) {
	if tr.sends == nil {
		tr.sends, tr.recvs = map[uint32][]*simSend{}, map[uint32][]*simRecv{}
	}
	s := w.nodes[from].send(pattern(n, uint64(len(w.nodes[from].posted))), op)
	tr.sends[op.Tag] = append(tr.sends[op.Tag], s)
	tr.recvs[op.Tag] = append(tr.recvs[op.Tag], w.nodes[1-from].recv(op.Tag, int64(room)))
}

// faults are the faults of one packet, or of it and its successor.
var faults = map[string]struct {
	fates []fate
	next  bool // the next packet is lost
	slow  time.Duration
}{
	"lost":                 {fates: nil},
	"lost with the next":   {fates: nil, next: true},
	"twice":                {fates: []fate{{}, {}}},
	"twice, once late":     {fates: []fate{{}, {delay: 2 * time.Second}}, slow: 2 * time.Second},
	"a bit late":           {fates: []fate{{delay: 50 * time.Microsecond}}},
	"late":                 {fates: []fate{{delay: 3 * time.Millisecond}}},
	"later than a timeout": {fates: []fate{{delay: 300 * time.Millisecond}}, slow: 300 * time.Millisecond},
	"swapped":              {fates: []fate{{delay: swapped}}},
	"corrupt header":       {fates: []fate{{flip: 8*33 + 1}}},
	"corrupt length":       {fates: []fate{{flip: 8*20 + 1}}},
	"corrupt checksum":     {fates: []fate{{flip: 8*24 + 3}}},
	"corrupt end":          {fates: []fate{{flip: 1 << 20}}}, // anywhere
}

func TestFaults(t *testing.T) {
	for name, x := range exchanges {
		t.Run(name, func(t *testing.T) {
			var clean [2]int
			end, err := runExchange(x.cfg, x.post, nil, &clean)
			if err != nil {
				t.Fatal(err)
			}
			for fault, f := range faults {
				for from := range 2 {
					for nth := range clean[from] {
						var sent [2]int
						at, err := runExchange(x.cfg, x.post, func(rank, n int, _ []byte) []fate {
							switch {
							case rank == from && n == nth:
								return f.fates
							case rank == from && n == nth+1 && f.next:
								return nil
							}
							return onTime
						}, &sent)
						id := fmt.Sprintf("packet %d of rank %d %s", nth, from, fault)
						if err != nil {
							t.Errorf("%s: %v", id, err)
						}
						if extra := sent[0] + sent[1] - clean[0] - clean[1]; extra > 16 {
							t.Errorf("%s: %d packets more than %d", id, extra, clean[0]+clean[1])
						}
						if late := at - end - f.slow; late > 400*time.Millisecond {
							t.Errorf("%s: ends %v later", id, late)
						}
					}
				}
			}
		})
	}
}

// runExchange runs an exchange and returns the time at which it ended.
func runExchange(cfg Config, post func(*world, *[2]traffic), fault func(int, int, []byte) []fate,
	sent *[2]int) (time.Duration, error) {
	w := newWorld(cfg)
	if fault != nil {
		w.fault = fault
	}
	var tr [2]traffic
	post(w, &tr)
	w.run(time.Minute)
	end := w.now
	*sent = w.sent
	return end, errors.Join(w.err(), quiet(w.nodes[0]), quiet(w.nodes[1]), tr[0].check(), tr[1].check())
}

// An ACK is answered only if it asks for an answer: two ranks never exchange packets for no reason.
func TestAckIsNotAnswered(t *testing.T) {
	w := newWorld(Config{})
	var tr [2]traffic
	postMany(w, &tr)
	var acks [][]byte
	w.fault = func(from, _ int, b []byte) []fate {
		if h, _, _ := protocol.ParseExtended(b); from == 0 && h.Type == protocol.Ack {
			acks = append(acks, b)
		}
		return onTime
	}
	w.run(time.Minute)
	if err := errors.Join(w.err(), quiet(w.nodes[1])); err != nil || len(acks) < 3 {
		t.Fatalf("%d ACKs, %v", len(acks), err)
	}
	for _, b := range acks {
		for range 3 {
			before := w.sent
			w.arrive(0, b, 0)
			w.run(w.now + time.Minute)
			h, _, _ := protocol.ParseExtended(b)
			want := 0
			if h.Flags&protocol.FlagHello != 0 {
				want = 1
			}
			if n := w.sent[0] + w.sent[1] - before[0] - before[1]; n != want {
				t.Errorf("%v brought about %d packets, want %d", &h, n, want)
			}
		}
	}
}
