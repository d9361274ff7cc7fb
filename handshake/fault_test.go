package handshake_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The fault table: each datagram of a message in turn meets each fault. Every
// case ends with the message delivered once and intact, or with an error, or is
// one of those that docs/ZRLMPI_protocol.md lists as beyond this wire.

// faultSizes are messages of 1, 3 and 50 datagrams, the last of them short or
// full.
var faultSizes = []struct {
	datagrams, words int
	full             bool
}{{1, 300, false}, {3, 900, false}, {3, 1054, true}, {50, 17500, false}, {50, 17692, true}}

// faultKinds are what can happen to one datagram. 150 ms is past the first
// time-out of every node.
var faultKinds = []struct {
	name string
	fate []time.Duration
}{
	{"lost", nil},
	{"duplicated", []time.Duration{0, 0}},
	{"duplicated_late", []time.Duration{0, 5 * time.Millisecond}},
	{"delayed", []time.Duration{150 * time.Millisecond}},
	{"swapped", []time.Duration{swapped}},
}

// one applies a fate to the nth datagram from one side.
func one(side, nth int, fate []time.Duration) fault {
	return func(from, n int, _ []byte) []time.Duration {
		if from == side && n == nth {
			return fate
		}
		return onTime
	}
}

// beyondTheWire reports whether the wire hides a fault from everybody: bare
// datagrams of equal length carry nothing that tells them apart. place is the
// datagram's place in the message, 0 the one with the header.
func beyondTheWire(kind string, place, datagrams int, full bool) bool {
	last := datagrams - 1
	switch kind {
	case "duplicated":
		// The copy is taken for the next one, and so on to the end, where
		// a short last datagram would give it away.
		return full && place >= 1 && place < last
	case "swapped":
		// The last one's next is the repeat of the whole message, into
		// which it then falls.
		return place >= 1 && (place+1 < last || full)
	}
	return false
}

// pairing is two kinds of node, of which the first sends.
type pairing struct {
	name string
	make func() (sender, receiver *party)
	// mayFail says which faults may cost the sender, or nobody, an error:
	// side 0 is the sender, place the datagram's place in DATA, or -1 for
	// the other packets. nil: none may.
	mayFail func(kind string, side, place, datagrams int) bool
	// hides says which faults in a sender's DATA damage a message unseen
	// because of the receiver's flaws, over those that the wire hides from
	// everybody. That damage may reach the next message too.
	hides func(kind string, place, datagrams int) bool
}

// party is an endpoint with a way to post operations on it.
type party struct {
	endpoint
	send func(data []byte) func() result
	recv func(words int) func() result
}

func (r *rank) party() *party {
	return &party{
		endpoint: r,
		send:     func(data []byte) func() result { op := r.postSend(data); return func() result { return op.result } },
		recv:     func(words int) func() result { op := r.postRecv(words); return func() result { return op.result } },
	}
}

func hostTo(remote uint32, rules handshake.Rules) handshake.Config {
	return handshake.Config{
		Local: 0, Remote: remote, Peer: rules, Timing: handshake.DefaultTiming(rules), Shape: protocol.CPUShape(),
	}
}

// standIn is how a stand-in with all of the FPGA's habits is configured.
func standIn(local, remote uint32) handshake.Config {
	return handshake.Config{
		Local: local, Remote: remote, Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(local),
		Habits: handshake.Habits{OneParkedHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
	}
}

// fpgaMayFail are the faults after which a host that sends to an FPGA gets an
// error: the FPGA acknowledges once, and a cut message is not repeated.
func fpgaMayFail(kind string, side, place, datagrams int) bool {
	switch {
	case side == 1:
		// A swapped ACK waits for a packet that never comes.
		return place == ackPlace && (kind == "lost" || kind == "swapped")
	case place >= 0 && datagrams > 1:
		// If the first one is lost, the FPGA asks again.
		return kind != "lost" || place > 0
	}
	return false
}

// ackPlace marks the receiver's ACK.
const ackPlace = -2

var pairings = []pairing{
	{
		name: "software",
		make: func() (*party, *party) {
			a := hostTo(1, handshake.SoftwarePeer())
			b := a
			b.Local, b.Remote = 1, 0
			return newRank(a).party(), newRank(b).party()
		},
	},
	{
		name: "host_to_standin",
		make: func() (*party, *party) {
			return newRank(hostTo(1, handshake.FPGAPeer(1))).party(), newRank(standIn(1, 0)).party()
		},
		mayFail: fpgaMayFail,
	},
	{
		name: "standin_to_host",
		make: func() (*party, *party) {
			return newRank(standIn(1, 0)).party(), newRank(hostTo(1, handshake.FPGAPeer(1))).party()
		},
	},
}

func TestFaults(t *testing.T) {
	for _, pr := range pairings {
		for _, size := range faultSizes {
			clean := newScenario(pr, size.words)
			clean.run(nil)
			clean.mustBeIntact(t)
			for _, side := range []int{0, 1} {
				for nth := range clean.perMessage[side] {
					for _, kind := range faultKinds {
						name := fmt.Sprintf("%s/%d_words/%s/%s_%d", pr.name, size.words, kind.name,
							[]string{"sender", "receiver"}[side], nth)
						t.Run(name, func(t *testing.T) {
							place := nth - 1 // 0 is SEND_REQUEST
							if side == 1 {
								place = -1 - nth // CLEAR_TO_SEND, ACK
							}
							sc := newScenario(pr, size.words)
							sc.run(one(side, nth, kind.fate))
							hidden := side == 0 && beyondTheWire(kind.name, place, size.datagrams, size.full)
							spreads := side == 0 && pr.hides != nil && pr.hides(kind.name, place, size.datagrams)
							fails := pr.mayFail != nil && pr.mayFail(kind.name, side, place, size.datagrams)
							if hidden || spreads || fails {
								sc.mustEnd(t, hidden, spreads, fails)
								return
							}
							sc.mustBeIntact(t)
						})
					}
				}
			}
		}
	}
}

// scenario is two messages in a row. The fault meets the first one; the second
// shows whether it left anything behind.
type scenario struct {
	w          *world
	payload    [2][]byte
	sends      [2]func() result
	recvs      [2]func() result
	perMessage [2]int // datagrams of one clean message from each side
}

func newScenario(pr pairing, words int) *scenario {
	sc := &scenario{}
	a, b := pr.make()
	for i := range sc.payload {
		sc.payload[i] = pattern(words, uint32(i+1))
		sc.sends[i] = a.send(sc.payload[i])
		sc.recvs[i] = b.recv(words)
	}
	sc.w = newWorld(a, b, nil)
	return sc
}

func (sc *scenario) run(f fault) {
	if f != nil {
		sc.w.fault = f
	}
	sc.w.run(2 * time.Minute)
	for i, n := range sc.w.sent {
		sc.perMessage[i] = n / 2
	}
}

// transcript shows what happened, when a test fails.
func (sc *scenario) transcript() string {
	log := sc.w.log
	if len(log) > 60 {
		log = append(append([]string{}, log[:30]...), append([]string{"..."}, log[len(log)-30:]...)...)
	}
	return strings.Join(log, "\n")
}

func (sc *scenario) mustBeIntact(t *testing.T) {
	t.Helper()
	for i := range sc.payload {
		s, r := sc.sends[i](), sc.recvs[i]()
		if !s.done || s.err != nil {
			t.Errorf("message %d: the sender ended %v with %v", i, s.done, s.err)
		}
		if !r.done || r.err != nil || !bytes.Equal(r.data, sc.payload[i]) {
			t.Errorf("message %d: the receiver ended %v with %v, intact %v", i, r.done, r.err, bytes.Equal(r.data, sc.payload[i]))
		}
	}
	if t.Failed() {
		t.Log("\n" + sc.transcript())
	}
}

// mustEnd is for the faults that the wire hides, and for those that cost an
// error: no sender hangs, what it is told is true, and no damage goes further
// than the wire hides it, which is the message that met the fault, and the next one
// where a flaw of the receiver spreads it.
func (sc *scenario) mustEnd(t *testing.T, hidden, spreads, fails bool) {
	t.Helper()
	for i := range sc.payload {
		s, r := sc.sends[i](), sc.recvs[i]()
		intact := r.done && r.err == nil && bytes.Equal(r.data, sc.payload[i])
		if !s.done {
			t.Errorf("message %d: the sender hangs", i)
			continue
		}
		if s.err != nil && (!fails || !errors.Is(s.err, handshake.ErrPartial) && !errors.Is(s.err, handshake.ErrTimeout)) {
			t.Errorf("message %d: the sender got %v", i, s.err)
		}
		if s.err == nil && !intact && !(hidden && i == 0) && !spreads {
			t.Errorf("message %d: the sender believes that it arrived; receiver done %v, error %v", i, r.done, r.err)
		}
		if r.done && !intact && !(hidden && i == 0) && !spreads {
			t.Errorf("message %d: delivered damaged", i)
		}
	}
	if t.Failed() {
		t.Log("\n" + sc.transcript())
	}
}
