package integration_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// restartPace is the clock frequency of a simulated MPE in Hz. At this frequency, its timeouts take as long as on
// a deployed MPE.
const restartPace = 500_000

// simulatedMPEs are the simulated MPEs, each with a role that echoes messages.
var simulatedMPEs = map[string]func(t *testing.T) (simulator string){
	"upstream's MPE": func(t *testing.T) string {
		return simulators.BuildMPE(t, "peer", simulators.EchoEdit, simulators.TimeoutEdit(restartPace/10))
	},
	"MPE in Verilog": func(t *testing.T) string {
		return fmt.Sprintf("%s +timeout=%d", simulators.BuildRole(t, "verilog-mpe"), restartPace/10)
	},
}

func init() { atEnd = append(atEnd, simulators.RemoveAll) }

func (c restartCase) simulated() bool { return simulatedMPEs[c.node] != nil }

// restartMPE is a simulated MPE, in a daemon of this process. The relay observes its progress.
type restartMPE struct {
	cancel context.CancelFunc
	ended  chan error

	mu    sync.Mutex
	calls []restartCall // calls of the rank that the MPE has not served yet
	n     int
	words int
	bytes int // of the rank's message in transit
}

func newRestartMPE(t *testing.T, c restartCase, simulator, own, peer string) *restartMPE {
	t.Helper()
	if c.node == "upstream's MPE" {
		simulator += " 0 0" + strings.Repeat(fmt.Sprint(" ", c.words), restartMessages)
	}
	m := &restartMPE{calls: c.calls(), words: c.words}
	m.start(t, simulator, own, peer)
	return m
}

// start runs a daemon with a simulator at a separate address, and returns when the simulator receives packets.
func (m *restartMPE) start(t *testing.T, simulator, own, peer string) {
	t.Helper()
	text := fmt.Sprintf("control: {socket: \"\"}\nhttp: {listen: \"\"}\nranks:\n  - {rank: 0, address: %q, peer: "+
		"software}\n  - {rank: 1, address: %q, run: standin, kernel: \"rtl-net:cycles_per_second=%d %s\"}\n",
		peer+":2718", own+":2718", restartPace, simulator)
	cfg, err := config.Parse(strings.NewReader(text), "mpe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	d, err := daemon.New(cfg, daemon.Options{ReadyWriter: notify(ready)})
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(context.Background())
	m.ended = make(chan error, 1)
	go func() { m.ended <- d.Run(ctx) }()
	select {
	case <-ready:
	case err := <-m.ended:
		t.Fatal(err)
	}
	open := func() bool {
		k := d.Status().Ranks[0].KernelStats
		return k != nil && k.Simulation != nil && k.Simulation.Text == "no datagram is in progress"
	}
	opened := false
	for range 5 { // the maximum time on a busy machine
		opened = opened || eventually(open)
	}
	if !opened {
		t.Error("the MPE has not opened its port")
	}
}

func (m *restartMPE) stop() {
	m.cancel()
	<-m.ended
}

// see observes a packet to the MPE. A complete message, or an ACK, advances the MPE to its next call.
func (m *restartMPE) see(fromHost bool, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !fromHost || len(m.calls) == 0 {
		return
	}
	h, defect := protocol.CloudFPGA.Parse(b)
	switch {
	case !defect.OK():
		m.bytes += len(b)
	case h.Type == protocol.Data:
		m.bytes = len(b)
	}
	received := m.bytes >= protocol.HeaderLen+m.words*protocol.WordLen
	if received && m.calls[0].Send || defect.OK() && h.Type == protocol.Ack && !m.calls[0].Send {
		m.calls, m.bytes = m.calls[1:], 0
		m.n++
	}
}

func (m *restartMPE) finished() (n int, wrong bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n, false
}

// mpeRestarts returns all runs with a simulated MPE: the rank is killed at each packet of the first message and of
// its echo.
func mpeRestarts(kind string) (all []restartCase) {
	for _, words := range []int{1, 346, 1000} {
		datagrams := int(protocol.CPUShape().NumDatagrams(uint32(words)))
		for i, down := range []time.Duration{50 * time.Millisecond, 1500 * time.Millisecond} {
			c := restartCase{node: kind, send: true, words: words, down: down}
			for packet, sent := range []bool{true, false, true, false, false, true, false, true} {
				c.sent, c.daemon = sent, (packet+i)%2 == 0
				c.nth = []int{0, 0, 1, 1, 2, 1 + datagrams, 3, 2 + datagrams}[packet]
				all = append(all, c)
			}
		}
	}
	return all
}

// TestProcessIsRestartedBesideAnMPE runs TestProcessIsRestarted and TestProgramCallsLaterThanItsPeerAsks with simulated
// MPEs.
func TestProcessIsRestartedBesideAnMPE(t *testing.T) {
	for kind, build := range simulatedMPEs {
		t.Run(kind, func(t *testing.T) {
			lab := restartLab{mpe: build(t)}
			cases := mpeRestarts(kind)
			for i, later := range []time.Duration{300 * time.Millisecond, 2 * time.Second, 4 * time.Second,
				6 * time.Second} {
				cases = append(cases, restartCase{node: kind, send: true, words: 1000, daemon: i%2 == 0,
					down: 50 * time.Millisecond, later: later})
			}
			if !*allRestarts {
				cases = slices.DeleteFunc(cases,
					func(c restartCase) bool {
						return c.words != 1000 || c.down > time.Second ||
							c.later > 2*time.Second
					})
			}
			runRestarts(t, lab, 2, cases)
		})
	}
}
