package handshake_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Duplicates and delays beyond the next message: a host and a deployed node that echoes, some rounds with pauses
// between them, and one packet of any kind that is duplicated or late.

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

// newEchoRounds makes a run in which the host posts its receive together with the send if early, and a moment later
// otherwise.
func newEchoRounds(kind string, words int, pause time.Duration, early bool) *echoRounds {
	e := &echoRounds{}
	rules := handshake.FPGAPeer(1)
	var end endpoint
	var after func(at time.Duration)
	if kind == "cpu" {
		rules = handshake.CPUPeer()
		c := newCPU(1, 0)
		end, e.node = c, c.party()
		after = func(at time.Duration) { c.ops[len(c.ops)-1].after = at }
	} else {
		f := newFPGA(1, 0)
		end, e.node = f, f.party()
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
		e.node.send(pattern(words, uint32(i+100)))
		after(at)
	}
	e.w = newWorld(e.host, end, nil)
	return e
}

// outcome is like the method of scenario, for both directions.
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
			return believed, fmt.Sprintf("round %d: send done %v, receive done %v; the node: %s", i, s.done, r.done,
				e.node.broken())
		}
	}
	return intact, ""
}

// TestDuplicatesAcrossRounds: a control packet of any round, or a message of one datagram, that is lost, duplicated or
// late makes no side accept wrong data, and no goroutine waits forever. The effects of late datagrams of longer
// messages are listed in capture/testdata/faults.golden.
func TestDuplicatesAcrossRounds(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fpga", "cpu"} {
		for _, words := range []int{300, 349, 900} {
			for _, pause := range []time.Duration{0, 40 * ms, 70 * ms} {
				for _, early := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s/%d words/%v/early %v", kind, words, pause, early), func(t *testing.T) {
						t.Parallel()
						clean := newEchoRounds(kind, words, pause, early)
						clean.w.run(3 * time.Minute)
						if o, why := clean.outcome(); o != intact {
							t.Fatal(why)
						}
						nth := [2]int{}
						for _, s := range clean.w.log {
							n := nth[s.from]
							nth[s.from]++
							if len(s.b) > protocol.HeaderLen && words > 346 {
								continue
							}
							for _, fate := range fates(0, 5, 30, 130, 150, 180, 250) {
								e := newEchoRounds(kind, words, pause, early)
								e.w.fault = one(s.from, n, fate)
								e.w.run(3 * time.Minute)
								if o, why := e.outcome(); o == believed {
									t.Errorf("packet %d of side %d (%s) comes after %v: %s", n, s.from, describe(s.b),
										fate, why)
								}
							}
						}
					})
				}
			}
		}
	}
}

// fates returns a loss, the given delays in milliseconds, and copies with these delays.
func fates(delays ...time.Duration) [][]time.Duration {
	all := [][]time.Duration{nil}
	for _, d := range delays {
		all = append(all, []time.Duration{0, d * ms}, []time.Duration{d * ms})
	}
	return all
}
