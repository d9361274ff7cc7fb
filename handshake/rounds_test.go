package handshake_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// Duplicates and delays that reach beyond the next message: a host and a deployed
// node that echoes, some rounds with pauses between them, and one packet of any kind
// that comes once more, or late.

const rounds = 6

// echoRounds is a host that sends and receives, and a node that echoes.
type echoRounds struct {
	w     *world
	host  *rank
	node  *party
	sends [rounds]*simOp
	recvs [rounds]*simOp
	got   [rounds]func() result
}

// newEchoRounds has the host post its receive with the send if early, and else a
// moment later.
func newEchoRounds(kind string, words int, pause time.Duration, early bool) *echoRounds {
	e := &echoRounds{}
	rules := handshake.FPGAPeer(1)
	var end endpoint
	var sendBack func(data []byte)
	var after func(at time.Duration)
	if kind == "cpu" {
		rules = handshake.CPUPeer()
		c := newCPU(1, 0)
		end, e.node = c, c.party()
		sendBack = func(data []byte) { e.node.send(data) }
		after = func(at time.Duration) { c.ops[len(c.ops)-1].after = at }
	} else {
		f := newFPGA(1, 0)
		end, e.node = f, f.party()
		sendBack = func(data []byte) { e.node.send(data) }
		after = func(at time.Duration) { f.ops[len(f.ops)-1].after = at }
	}
	e.host = newRank(hostTo(1, rules))
	for i := range rounds {
		at := time.Duration(i) * pause
		data := pattern(words, uint32(i+1))
		e.sends[i], e.recvs[i] = e.host.postSend(data), e.host.postRecv(words)
		e.sends[i].after, e.recvs[i].after = at, at
		if !early {
			e.recvs[i].after = at + 10*ms
		}
		e.got[i] = e.node.recv(words)
		after(at)
		sendBack(pattern(words, uint32(i+100)))
		after(at)
	}
	e.w = newWorld(e.host, end, nil)
	return e
}

// outcome is that of scenario, for both directions.
func (e *echoRounds) outcome() (outcome, string) {
	for i := range rounds {
		s, r, g := e.sends[i], e.recvs[i], e.got[i]()
		switch {
		case s.err != nil || r.err != nil:
			return failed, fmt.Sprintf("round %d: send %v, receive %v", i, s.err, r.err)
		case s.done && (!g.done || !bytes.Equal(g.data, s.buf)):
			return believed, fmt.Sprintf("round %d: the send succeeded, the node has it: %v", i, g.done)
		case r.done && !bytes.Equal(r.buf, pattern(len(r.buf)/4, uint32(i+100))):
			return believed, fmt.Sprintf("round %d: other words were received", i)
		case !s.done || !r.done:
			return believed, fmt.Sprintf("round %d: send done %v, receive done %v; the node: %s", i, s.done, r.done, e.node.broken())
		}
	}
	return intact, ""
}

func TestZZRounds(t *testing.T) {
	for _, kind := range []string{"fpga", "cpu"} {
		for _, words := range []int{300, 900, 349} {
			for _, pause := range []time.Duration{0, 40 * ms, 70 * ms} {
				for _, early := range []bool{true, false} {
					clean := newEchoRounds(kind, words, pause, early)
					clean.w.run(3 * time.Minute)
					if o, why := clean.outcome(); o != intact {
						t.Fatalf("%s %d %v %v: %s", kind, words, pause, early, why)
					}
					counts := map[string][3]int{}
					whys := map[string]string{}
					for side := range 2 {
						for n := range clean.w.sent[side] {
							for _, d := range []int{0, 5, 30, 130, 150, 180, 250} {
								for _, dup := range []bool{true, false} {
									e := newEchoRounds(kind, words, pause, early)
									fate := []time.Duration{time.Duration(d) * ms}
									if dup {
										fate = []time.Duration{0, time.Duration(d) * ms}
									}
									e.w.fault = one(side, n, fate)
									e.w.run(3 * time.Minute)
									o, why := e.outcome()
									var name string
									i := slices.IndexFunc(e.w.log, func(s sentAt) bool { return s.from == side })
									k := 0
									for _, s := range e.w.log {
										if s.from == side {
											if k == n {
												name = strings.Fields(describe(s.b))[0]
											}
											k++
										}
									}
									_ = i
									key := fmt.Sprintf("%s %d pause %v early %v side %d %s dup=%v %d", kind, words, pause, early, side, name, dup, d)
									c := counts[key]
									c[o]++
									counts[key] = c
									if o == believed {
										whys[key] = fmt.Sprintf("n=%d %s", n, why)
									}
								}
							}
						}
					}
					for k, w := range whys {
						t.Logf("%s: %v %s", k, counts[k], w)
					}
				}
			}
		}
	}
}
