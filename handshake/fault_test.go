package handshake_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The fault table: each datagram of a message meets each fault, while no side or one side is stalled. In every case
// both messages are delivered once and intact, or our side has an error. The exceptions are in testdata/faults.golden,
// and docs/ZRLMPI_protocol.md explains them: the wire does not show these faults.

var (
	allFaults    = flag.Bool("all-faults", false, "run every fault with every stall, for some minutes")
	updateFaults = flag.Bool("update-faults", false, "write testdata/faults.golden")
)

// faultSizes are the sizes of messages of 1, 3, 15 and 50 datagrams, whose last datagram is short or full.
var faultSizes = []struct {
	datagrams, words int
	full             bool
}{{1, 300, false}, {3, 900, false}, {3, 1054, true}, {15, 5200, false}, {15, 5302, true}, {50, 17500, false},
	{50, 17692, true}}

// faultKind is a fault of one datagram, for one world.
type faultKind struct {
	name string
	// fate are the delays after which copies arrive.
	fate []time.Duration
	// holds is the time for which the network stops: datagrams sent in this time arrive after it.
	holds time.Duration
}

func faultKinds() []faultKind {
	kinds := []faultKind{{name: "lost"}, {name: "swapped", fate: []time.Duration{swapped}}}
	for _, d := range []int{0, 5, 30, 150, 250} {
		kinds = append(kinds, faultKind{name: fmt.Sprintf("duplicated_%d", d),
			fate: []time.Duration{0, time.Duration(d) * ms}})
	}
	for _, d := range []int{30, 100, 150, 300} {
		kinds = append(kinds, faultKind{name: fmt.Sprintf("delayed_%d", d),
			fate: []time.Duration{time.Duration(d) * ms}})
	}
	for _, d := range []int{30, 150, 300} {
		kinds = append(kinds, faultKind{name: fmt.Sprintf("held_%d", d), holds: time.Duration(d) * ms})
	}
	return kinds
}

// faultOf applies a kind of fault to the nth datagram from one side.
func faultOf(w *world, side, nth int, k faultKind) fault {
	if k.holds == 0 {
		return one(side, nth, k.fate)
	}
	var until time.Duration
	return func(from, n int, _ []byte) []time.Duration {
		if from == side && n == nth {
			until = w.now + k.holds
		}
		if from == side && w.now < until {
			return []time.Duration{until - w.now}
		}
		return onTime
	}
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

// faultStalls are the stalls of either side, the sender being side 0: at its CLEAR_TO_SEND or ACK, and of the receiver
// at SEND_REQUEST, at the first datagram of DATA, and in the middle of DATA. They are longer and shorter than the
// timeouts.
func faultStalls() []stall {
	stalls := []stall{{}}
	for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 3}} {
		for _, d := range []int{60, 110, 150, 300} {
			stalls = append(stalls, stall{at[0], at[1], time.Duration(d) * ms})
		}
	}
	return stalls
}

// pairing is a pair of kinds of node. The first one sends.
type pairing struct {
	name string
	make func() (sender, receiver *party)
}

// party is an endpoint on which operations can be posted.
type party struct {
	endpoint
	send func(data []byte) func() result
	recv func(words int) func() result
	// broken returns why the node cannot continue, or "". It is nil if the node is not a model.
	broken func() string
	// late delays the nth call of its program, which is the only possible stall of an FPGA, whose engine is hardware.
	// It is nil if the node is a process.
	late func(nth int, by time.Duration)
	// ours: the node has a Pair, so its results must be true.
	ours bool
}

func (r *rank) party() *party {
	return &party{
		endpoint: r,
		send:     func(data []byte) func() result { op := r.postSend(data); return func() result { return op.result } },
		recv:     func(words int) func() result { op := r.postRecv(words); return func() result { return op.result } },
		broken:   func() string { return "" },
		ours:     true,
	}
}

func hostTo(remote uint32, rules handshake.PeerRules) handshake.Config {
	return handshake.Config{
		Local: 0, Remote: remote, Peer: rules, Timing: handshake.DefaultTiming(rules), Shape: protocol.CPUShape(),
	}
}

// standIn returns the configuration of a stand-in with all of the FPGA's quirks.
func standIn(local, remote uint32) handshake.Config {
	return handshake.Config{
		Local: local, Remote: remote, Shape: protocol.FPGAShape(true), Timing: handshake.DeployedFPGA(local),
		Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
	}
}

var pairings = []pairing{
	{"software", func() (*party, *party) {
		a := hostTo(1, handshake.SoftwarePeer())
		b := a
		b.Local, b.Remote = 1, 0
		return newRank(a).party(), newRank(b).party()
	}},
	{"host_to_standin", func() (*party, *party) {
		return newRank(hostTo(1, handshake.FPGAPeer(1))).party(), newRank(standIn(1, 0)).party()
	}},
	{"standin_to_host", func() (*party, *party) {
		return newRank(standIn(1, 0)).party(), newRank(hostTo(1, handshake.FPGAPeer(1))).party()
	}},
	{"host_to_fpga", func() (*party, *party) {
		return newRank(hostTo(1, handshake.FPGAPeer(1))).party(), newFPGA(1, 0).party()
	}},
	{"host_to_cpu", func() (*party, *party) { return newRank(hostToCPU()).party(), newCPU(1, 0).party() }},
	{"cpu_to_host", func() (*party, *party) { return newCPU(1, 0).party(), newRank(hostToCPU()).party() }},
	{"fpga_to_host", func() (*party, *party) {
		return newFPGA(1, 0).party(), newRank(hostTo(1, handshake.FPGAPeer(1))).party()
	}},
}

// place describes the position of a datagram in its message.
func place(side, nth, datagrams int) string {
	switch {
	case side == 1 && nth == 0:
		return "CLEAR_TO_SEND"
	case side == 1:
		return "ACK"
	case nth == 0:
		return "SEND_REQUEST"
	case nth == 1:
		return "first"
	case nth == datagrams:
		return "last"
	}
	return "middle"
}

// outcome is the result of a case.
type outcome int

const (
	intact   outcome = iota // both messages delivered once and intact, without any error
	failed                  // our side has an error, and accepts nothing wrong
	believed                // a side accepts wrong data, or a node is broken, and our side has no error
)

func TestFaults(t *testing.T) {
	var (
		mu   sync.Mutex
		seen = map[string][3]int{}
	)
	t.Run("pairings", func(t *testing.T) {
		for _, pr := range pairings {
			t.Run(pr.name, func(t *testing.T) {
				t.Parallel()
				for _, size := range faultSizes {
					if !*allFaults && size.datagrams > 15 {
						continue
					}
					eachFault(t, pr, size.words, func(side, nth int, k faultKind, st stall) {
						sc := newScenario(pr, size.words)
						sc.run(func(w *world) fault { return faultOf(w, side, nth, k) }, st)
						o, why := sc.outcome()
						cell := fmt.Sprintf("%-16s %-10s %-14s %s", pr.name, sizeName(size.datagrams, size.full),
							place(side, nth, size.datagrams), k.name)
						mu.Lock()
						counts := seen[cell]
						counts[o]++
						seen[cell] = counts
						mu.Unlock()
						if o == believed && !hiddenFaults[cell] && !*updateFaults {
							t.Errorf("%s: %d words, datagram %d of side %d, stall %v: %s\n%s", cell, size.words, nth,
								side, st, why, sc.transcript())
						}
					})
				}
			})
		}
	})
	if *updateFaults {
		writeGolden(t, seen)
	}
	var sum [3]int
	for _, c := range seen {
		for i, n := range c {
			sum[i] += n
		}
	}
	t.Logf("%d cases: %d intact, %d failed with an error at our side, %d that the wire does not show",
		sum[0]+sum[1]+sum[2], sum[0], sum[1], sum[2])
}

// eachFault calls f for every datagram of a message, kind of fault and stall. Of the cases with a stall it runs a
// tenth, unless all are requested.
func eachFault(t *testing.T, pr pairing, words int, f func(side, nth int, k faultKind, st stall)) {
	t.Helper()
	clean := newScenario(pr, words)
	clean.run(nil, stall{})
	if o, why := clean.outcome(); o != intact {
		t.Fatalf("%d words, without a fault: %s", words, why)
	}
	for i, st := range faultStalls() {
		for side, n := range clean.perMessage {
			for nth := range n {
				for j, k := range faultKinds() {
					if st.lasts == 0 || *allFaults || (i+j+nth)%10 == 0 {
						f(side, nth, k, st)
					}
				}
			}
		}
	}
}

// writeGolden writes the cells in which wrong data was accepted.
func writeGolden(t *testing.T, seen map[string][3]int) {
	t.Helper()
	var b strings.Builder
	for _, cell := range slices.Sorted(maps.Keys(seen)) {
		if seen[cell][believed] > 0 {
			fmt.Fprintln(&b, cell)
		}
	}
	if err := os.WriteFile(goldenFaults, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sizeName(datagrams int, full bool) string {
	if full {
		return fmt.Sprintf("%d_full", datagrams)
	}
	return fmt.Sprint(datagrams)
}

const goldenFaults = "testdata/faults.golden"

// hiddenFaults are the cells whose faults cannot be detected from the packets.
var hiddenFaults = func() map[string]bool {
	text, err := os.ReadFile(goldenFaults)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	m := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		m[strings.TrimRight(line, "\n")] = true
	}
	return m
}()

// scenario simulates two consecutive messages. The fault affects the first one, and the second one shows whether the
// fault has lasting effects.
type scenario struct {
	w          *world
	ends       [2]*party
	payload    [2][]byte
	from       [2]int // the end that sends each message
	sends      [2]func() result
	recvs      [2]func() result
	perMessage [2]int // datagrams of one message from each side without faults
}

func newScenario(pr pairing, words int) *scenario {
	sc := &scenario{}
	a, b := pr.make()
	sc.ends = [2]*party{a, b}
	for i := range sc.payload {
		sc.payload[i] = pattern(words, uint32(i+1))
		sc.sends[i] = a.send(sc.payload[i])
		sc.recvs[i] = b.recv(words)
	}
	sc.w = newWorld(a.endpoint, b.endpoint, nil)
	return sc
}

func (sc *scenario) run(f func(*world) fault, st stall) {
	if f != nil {
		sc.w.fault = f(sc.w)
	}
	if late := sc.ends[st.side].late; late != nil && st.lasts > 0 {
		late(min(st.nth, 1), st.lasts)
		st = stall{}
	}
	sc.w.stall = st
	sc.w.run(2 * time.Minute)
	for i, n := range sc.w.sent {
		sc.perMessage[i] = n / 2
	}
}

// transcript describes the run when a test fails.
func (sc *scenario) transcript() string {
	var b strings.Builder
	for i, s := range sc.w.log {
		if i < 30 || i >= len(sc.w.log)-30 {
			fmt.Fprintln(&b, s)
		}
	}
	return b.String()
}

// outcome evaluates a scenario. After an error on our side, whether sender or receiver, the program decides about later
// messages in the same direction.
func (sc *scenario) outcome() (o outcome, why string) {
	reported := false
	for i := range sc.payload {
		sender, receiver := sc.ends[sc.from[i]], sc.ends[1-sc.from[i]]
		s, r := sc.sends[i](), sc.recvs[i]()
		same := r.done && r.err == nil && bytes.Equal(r.data, sc.payload[i])
		if sender.ours && s.err != nil || receiver.ours && r.err != nil {
			reported = true
			o, why = max(o, failed), fmt.Sprintf("message %d: send %v, receive %v", i, s.err, r.err)
		}
		switch {
		case same && s.done && s.err == nil:
		case sender.ours && s.done && s.err == nil && !same:
			return believed, fmt.Sprintf("message %d: the send succeeded; receive done %v, error %v, intact %v", i,
				r.done, r.err, same)
		case sender.ours && s.err != nil: // a flawed receiver may accept the message nevertheless
		case r.done && r.err == nil && !same:
			return believed, fmt.Sprintf("message %d was delivered, but not intact; send done %v, error %v", i, s.done,
				s.err)
		case reported:
		case !s.done || !r.done:
			return believed, fmt.Sprintf("message %d: send done %v, receive done %v, without an error", i, s.done,
				r.done)
		}
	}
	for _, p := range sc.ends {
		if b := p.broken(); b != "" && !reported {
			return believed, b
		}
	}
	return o, why
}
