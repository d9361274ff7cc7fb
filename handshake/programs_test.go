package handshake_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var programs = flag.Int("programs", 2000, "how many random programs to run against each model of a deployed node")

// message is a message of a random program: its direction, its words, and both calls.
type message struct {
	fromHost bool
	words    int
	data     []byte
	host     *simOp
	at       func() result // the node's result
}

// newProgram returns a random program of some messages between a host and a deployed node. The node makes its blocking
// calls in order. The host posts the calls in each direction in order.
func newProgram(kind string, rng *rand.Rand) (w *world, node *party, messages []*message) {
	rules := handshake.FPGAPeer(1)
	var end endpoint
	var after func(at time.Duration)
	if kind == "cpu" {
		rules = handshake.CPUPeer()
		c := newCPU(1, 0)
		end, node = c, c.party()
		after = func(at time.Duration) { c.ops[len(c.ops)-1].after = at }
	} else {
		f := newFPGA(1, 0)
		end, node = f, f.party()
		after = func(at time.Duration) { f.ops[len(f.ops)-1].after = at }
	}
	host := newRank(hostTo(1, rules))
	pauses := []time.Duration{0, 0, 0, ms, 40 * ms, 120 * ms, 1300 * ms, 5 * time.Second}
	lengths := []int{1, 2, 3, 300, 346, 347, 348, 349, 354, 700, 701, 1055, 2000}
	var hostAt, nodeAt time.Duration
	for i := range 2 + rng.IntN(7) {
		m := &message{fromHost: rng.IntN(2) == 0, words: lengths[rng.IntN(len(lengths))]}
		hostAt += pauses[rng.IntN(len(pauses))]
		nodeAt += pauses[rng.IntN(len(pauses))]
		m.data = pattern(m.words, uint32(i+1))
		if m.fromHost {
			m.host, m.at = host.postSend(m.data), node.recv(m.words)
		} else {
			m.host, m.at = host.postRecv(m.words), node.send(m.data)
		}
		m.host.after = hostAt
		after(nodeAt)
		messages = append(messages, m)
	}
	return newWorld(host, end, nil), node, messages
}

// judge returns the errors in the outcome of a program: a broken node, and wrong data accepted by a side. Without a
// fault, everything must have been received. lost is the lost datagram, or nil.
func judge(node *party, messages []*message, lost []byte) string {
	h, defect := protocol.CloudFPGA.Parse(lost)
	ackLost := defect.OK() && h.Type == ack && h.Src == 0
	faulty := lost != nil
	reported := false
	for i, m := range messages {
		there := m.at()
		if m.host.err != nil {
			if !faulty {
				return fmt.Sprintf("message %d: %v", i, m.host.err)
			}
			reported = true
		}
		got, done := there.data, there.done
		if !m.fromHost {
			got, done = m.host.data, m.host.done && m.host.err == nil
		}
		same := done && bytes.Equal(got, m.data)
		switch {
		case reported: // the program decides how to continue
		case m.fromHost && m.host.done && !same:
			return fmt.Sprintf("message %d of %d words: the send succeeded; the node has it: %v", i, m.words,
				there.done)
		case done && !same:
			return fmt.Sprintf("message %d of %d words was delivered, but not intact", i, m.words)
		case !m.fromHost && same && ackLost && !there.done:
			return "" // it has no retransmission left: L15
		case !m.host.done || !there.done:
			return fmt.Sprintf("message %d of %d words, from the host %v: host done %v, node done %v %s", i, m.words,
				m.fromHost, m.host.done, there.done, node.broken())
		}
	}
	if b := node.broken(); b != "" && !reported {
		return b
	}
	return ""
}

// TestRandomPrograms: whatever the programs of a host and a deployed node exchange, and however late their calls are,
// no packet of the host wedges or crashes the node; and if a datagram is lost, no side accepts wrong data.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fpga", "cpu"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(*programs) {
				run := func(side, nth int) (w *world, why string) {
					w, node, messages := newProgram(kind, rand.New(rand.NewPCG(seed, 1)))
					var lost []byte
					w.fault = func(from, n int, b []byte) []time.Duration {
						if from == side && n == nth {
							lost = b
							return nil
						}
						return onTime
					}
					w.run(10 * time.Minute)
					return w, judge(node, messages, lost)
				}
				clean, why := run(-1, 0)
				if why != "" {
					t.Errorf("program %d: %s\n%v", seed, why, clean.log)
					continue
				}
				for side := range 2 {
					nth := rand.New(rand.NewPCG(seed, 2)).IntN(clean.sent[side])
					if w, why := run(side, nth); why != "" {
						t.Errorf("program %d, datagram %d of side %d lost: %s\n%v", seed, nth, side, why, w.log)
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}
