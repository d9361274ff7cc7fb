package hangs_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
	"github.com/zrlmpi/zrlmpid/mpi"
)

var (
	only = flag.String("only", "", "run hangs whose name matches this regular expression")
	show = flag.String("show", "",
		"log the answers with this verdict: verdict.Right, listed, silent, missing or wrong; or all")
	write = flag.Bool("write", false, "write the results to docs/reliability.md and docs/data")
)

// nodeMoments lists the times after the start of the host's program at which the host is asked. A call hangs once it
// has lasted for hangsAfter.
var nodeMoments = []time.Duration{1500 * time.Millisecond, 6 * time.Second}

const hangsAfter = 1200 * time.Millisecond

// nodeHang is a run of a row of the table. Rank 0 is a host in this process, and rank 1 a node. A relay connects them.
type nodeHang struct {
	*cluster
	*row
	partner *partner
	relays  []*relay
	nodes   []deployedNode
	empty   []*net.UDPConn // addresses at which nothing answers
	text    string         // the host's configuration

	began   time.Time    // of the host's program
	acted   bool         // the row's action was executed
	ended   bool         // the host's program ended by itself
	asked   int          // number of moments done
	since   atomic.Int64 // start of the host's call, in ns, or 0 between calls
	failed  atomic.Pointer[error]
	answers []answer
	// endProgram ends the host's program, which then closes programEnded.
	endProgram   context.CancelFunc
	programEnded chan struct{}
}

// answer is the result of a diagnosis of a hang.
type answer struct {
	from    string // fromHost or fromRecording
	at      time.Duration
	verdict verdict.Verdict
	text    string
}

// at returns an address in the hang's network.
func (h *nodeHang) at(last string) netip.AddrPort {
	if !strings.Contains(last, ":") {
		last += ":2718"
	}
	return netip.MustParseAddrPort(h.net + last)
}

// setUp starts the host, the relay and the node. The host's program runs when the node is ready.
func (h *nodeHang) setUp(t *testing.T) {
	t.Helper()
	h.cluster = newCluster(t)
	t.Cleanup(h.close)
	r, p := h.row, h.partner
	entry := func(at string) string { return at + ", peer: " + cmp.Or(r.peer, p.kind) }
	ranks := []string{"1, run: host", entry(cmp.Or(r.hostMap, "4"))}
	if r.swapped {
		ranks = []string{"1, run: host", entry("6"), entry("4")}
		h.relays = append(h.relays, newRelay(t, h.at("1"), h.at("5"), h.at("6"), h.at("7"), h.at("10:40000"), nil))
	}
	h.text = h.cluster.text(cmp.Or(r.defaults, cloudFPGA), ranks...)
	h.relays = append(h.relays, newRelay(t, h.at("1"), h.at("3"), h.at("4"), h.at("2"), h.at("8:40000"), r.faults))
	if r.hostMap != "" && !r.refuses {
		conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(h.at(r.hostMap)))
		if err != nil {
			t.Fatal(err)
		}
		h.empty = append(h.empty, conn)
	}
	if r.refuses && r.nodeDown {
		h.relay().refuse()
	}
	if !r.hostDown {
		h.start(here{}, h.text, 0)
	}
	if r.swapped {
		h.nodes = append(h.nodes, p.start(t, 2, h.at("5"), h.at("7"), mirror(r.host)))
	}
	if !r.nodeDown {
		h.startNode()
	}
}

func (h *nodeHang) relay() *relay { return h.relays[len(h.relays)-1] }

func (h *nodeHang) startNode() {
	host, program := h.at(cmp.Or(h.nodeMap, "2")), cmp.Or(h.row.node, mirror(h.host))
	h.nodes = append(h.nodes, h.partner.start(h.t, 1, h.at("3"), host, program))
}

// close stops the host, the relays and the nodes.
func (h *nodeHang) close() {
	h.cluster.close()
	for _, n := range h.nodes {
		n.stop()
	}
	h.nodes = nil
	for _, r := range h.relays {
		r.close()
	}
	for _, conn := range h.empty {
		conn.Close()
	}
}

// runHost runs the host's program.
func (h *nodeHang) runHost() {
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(h.ctx)
	h.endProgram, h.programEnded = cancel, ended
	h.run(0, func(_ context.Context, world *mpi.Comm) error {
		defer close(ended)
		for _, c := range calls(h.host) {
			h.since.Store(time.Now().UnixNano())
			err := c.make(ctx, world)
			h.since.Store(0)
			if err != nil {
				if ctx.Err() == nil {
					h.failed.Store(&err)
				}
				return nil
			}
		}
		return nil
	})
}

// make makes the call.
func (c call) make(ctx context.Context, world *mpi.Comm) (err error) {
	ints, floats := make([]int32, c.words), make([]float32, c.words)
	ints[0], floats[0] = int32(c.number), float32(c.number)
	switch {
	case c.sends && c.float:
		err = mpi.Send(ctx, world, floats, 1, 0)
	case c.sends:
		err = mpi.Send(ctx, world, ints, 1, 0)
	case c.float:
		_, err = mpi.Recv(ctx, world, floats, 1, 0)
	default:
		_, err = mpi.Recv(ctx, world, ints, 1, 0)
	}
	return err
}

// hangs reports whether the host's program hangs in a call.
func (h *nodeHang) hangs() bool {
	since := h.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) >= hangsAfter
}

// advance does the work that is due, and reports whether the last diagnosis of the hang is complete.
func (h *nodeHang) advance() bool {
	if h.began.IsZero() {
		if slices.ContainsFunc(h.nodes, func(n deployedNode) bool { return !n.ready() }) {
			return false
		}
		h.began = time.Now()
		if !h.hostDown {
			h.runHost()
		}
	}
	elapsed := time.Since(h.began)
	if h.do != nil && !h.acted && (h.after > 0 && elapsed >= h.after || h.after == 0 && h.relay().struck()) {
		h.acted = true
		h.do(h)
	}
	for h.asked < len(nodeMoments) && elapsed >= nodeMoments[h.asked] {
		if h.hangs() {
			h.ask(moments[h.asked])
		}
		h.asked++
	}
	return h.asked == len(nodeMoments) && (!h.goesOn() || h.since.Load() == 0 || elapsed > causeTime)
}

// goesOn reports whether the host's program is expected to continue by itself, or to fail, rather than to hang.
func (h *nodeHang) goesOn() bool { return strings.Contains(h.ends, h.partner.kind) }

// ask asks the host.
func (h *nodeHang) ask(at time.Duration) {
	d := diagnosis.Diagnose(h.sources(0), time.Second)
	a := answer{from: fromHost, at: at, verdict: verdict.Silent, text: d.Text()}
	for i := range d.Findings {
		f := &d.Findings[i]
		a.judge(h, f.Certain, diagnosis.Possibility{Cause: infer.Cause(f.Cause), Rank: f.Rank, Peer: f.Peer},
			f.Possible)
	}
	h.answers = append(h.answers, a)
}

const fromHost, fromRecording = "host", "recording"

// judge compares a certain cause, or a list of possible causes, with the truth.
func (a *answer) judge(h *nodeHang, certain bool, cause diagnosis.Possibility, possible []diagnosis.Possibility) {
	v := verdict.Missing
	switch {
	case certain && h.isTrue(cause):
		v = verdict.Right
	case certain:
		v = verdict.Wrong
	case slices.ContainsFunc(possible, h.isTrue):
		v = verdict.Listed
	}
	if a.verdict == verdict.Silent || v == verdict.Wrong || a.verdict != verdict.Wrong && v < a.verdict {
		a.verdict = v
	}
}

// analyze judges the recording at the host's interface.
func (h *nodeHang) analyze() {
	var units []pcapng.Unit
	for _, r := range h.relays {
		units = append(units, r.recording()...)
	}
	if len(units) == 0 {
		return
	}
	slices.SortStableFunc(units, func(a, b pcapng.Unit) int { return a.Time.Compare(b.Time) })
	analysis := capture.NewAnalysis(h.row.name, capture.AnalysisOptions{})
	if err := analysis.Analyze(&recording{units: units, end: time.Now()}); err != nil {
		h.t.Fatal(err)
	}
	a := answer{from: fromRecording, at: nodeMoments[len(nodeMoments)-1], verdict: verdict.Silent}
	for _, f := range analysis.Report().Findings {
		a.text += fmt.Sprintf("%s: %s\n", f.Kind, f.Text)
		cause, ok := kindCauses[f.Kind]
		switch {
		case len(f.Possible) > 1:
			a.judge(h, false, diagnosis.Possibility{}, f.Possible)
		case len(f.Possible) == 1:
			a.judge(h, true, f.Possible[0], nil)
		case ok:
			a.judge(h, true, diagnosis.Possibility{Cause: infer.Cause(cause), Rank: 1, Peer: 0}, nil)
		}
		for _, p := range f.Possible {
			a.text += "  possible: " + p.Text + "\n"
		}
	}
	h.answers = append(h.answers, a)
}

// kindCauses maps kinds of findings in a recording to the cause that they prove.
var kindCauses = map[capture.FindingKind]string{
	capture.Deadlock: diagnosis.WaitCycle, capture.Wedged: diagnosis.DeadEnd,
	capture.DatatypeMismatch: diagnosis.DatatypeMismatch,
	capture.WrongSource:      diagnosis.WrongAddress, capture.WrongDestination: diagnosis.WrongAddress,
}

// recording is a Source of recorded packets.
type recording struct {
	units []pcapng.Unit
	n     int64
	end   time.Time
}

func (r *recording) Next(u *pcapng.Unit) error {
	if int(r.n) == len(r.units) {
		return io.EOF
	}
	*u = r.units[r.n]
	r.n++
	u.Packet = r.n
	return nil
}

func (r *recording) Stats() capture.Stats { return capture.Stats{Packets: r.n, Units: r.n, End: r.end} }
func (r *recording) Close() error         { return nil }

// TestNodes injects causes of hangs between a host and a deployed node, real or a model. It checks the answers of the
// host, and of a recording at its interface: certain answers must be right, and lists must contain the cause.
func TestNodes(t *testing.T) {
	filter := regexp.MustCompile(*only)
	var mu sync.Mutex
	byNode := map[string][]*nodeHang{}
	t.Run("with", func(t *testing.T) {
		for i := range partners {
			p := &partners[i]
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.prepare(t)
				var hangs []*nodeHang
				for i, r := range rows() {
					h := &nodeHang{row: &r, partner: p}
					if i%p.every == 0 && (r.kinds == "" || r.kinds == p.kind) && filter.MatchString(r.name) {
						hangs = append(hangs, h)
					}
				}
				runAll(t, slices.Clone(hangs))
				mu.Lock()
				defer mu.Unlock()
				byNode[p.name] = hangs
			})
		}
	})
	report(t, byNode)
}

// runAll runs all hangs concurrently. Each starts once the node of the previous one is ready.
func runAll(t *testing.T, hangs []*nodeHang) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var closing sync.WaitGroup
	defer closing.Wait()
	var run []*nodeHang
	for ; len(hangs)+len(run) > 0; <-tick.C {
		if len(hangs) > 0 && (len(run) == 0 || !run[len(run)-1].began.IsZero()) {
			hangs[0].setUp(t)
			run, hangs = append(run, hangs[0]), hangs[1:]
		}
		run = slices.DeleteFunc(run, func(h *nodeHang) bool {
			done := h.advance()
			if done {
				h.verify()
				closing.Go(h.close)
			}
			return done
		})
	}
}

// verify checks that the host hangs, unless its program is expected to continue.
func (h *nodeHang) verify() {
	h.t.Helper()
	if h.hangs() && !h.refuses { // otherwise the relay does not see all packets of the host
		h.analyze()
	}
	state := "hangs"
	if err := h.failed.Load(); err != nil {
		state = "fails: " + (*err).Error()
	} else if h.since.Load() == 0 {
		state = "goes on"
	}
	switch h.ended = state != "hangs"; {
	case h.ended && !h.goesOn() && h.ends != either:
		h.t.Errorf("%s: the host's program %s", h.row.name, state)
	case !h.ended && h.goesOn(): // timeouts of deployed nodes are too short on a busy machine
		h.t.Logf("%s: the host's program hangs, which it does not on an idle machine\n%s", h.row.name,
			diagnosis.Diagnose(h.sources(0), time.Second).Text())
	}
	for _, a := range h.answers {
		if a.verdict.String() == *show || *show == "all" {
			h.t.Logf("%s: %s at %v: %v\n%s", h.row.name, a.from, a.at, a.verdict, a.text)
		}
		if a.verdict == verdict.Wrong || a.verdict == verdict.Missing && !h.goesOn() {
			h.t.Errorf("%s: %s at %v: %v, the truth is %v\n%s", h.row.name, a.from, a.at, a.verdict, h.truths, a.text)
		}
	}
}

// tally counts answers.
type tally struct {
	hangs, goOn    int
	why, recording verdict.Counts
}

func tallyOf(hangs []*nodeHang, group string) (c tally) {
	for _, h := range hangs {
		switch {
		case group != "" && h.group != group:
			continue
		case h.ended:
			c.goOn++
		default:
			c.hangs++
		}
		for _, a := range h.answers {
			if a.from == fromHost {
				c.why[a.verdict]++
			} else {
				c.recording[a.verdict]++
			}
		}
	}
	return c
}

// report logs the results, and writes them to docs/reliability.md and docs/data.
func report(t *testing.T, byNode map[string][]*nodeHang) {
	totals := [][]string{append([]string{"node", "asked", "hangs", "goes on"}, verdict.Columns...)}
	var all []*nodeHang
	for i := range partners {
		name := partners[i].name
		if byNode[name] == nil {
			continue
		}
		all = append(all, byNode[name]...)
		c := tallyOf(byNode[name], "")
		for i, v := range []verdict.Counts{c.why, c.recording} {
			who := []string{"`why`", "`analyze`"}[i]
			totals = append(totals, append([]string{name, who, fmt.Sprint(c.hangs), fmt.Sprint(c.goOn)}, v.Cells()...))
		}
	}
	kinds := [][]string{{"injected", "hangs", "goes on", "why: right", "why: list", "why: nothing", "why: wrong",
		"analyze: right", "analyze: list", "analyze: nothing", "analyze: wrong"}}
	groups := map[string]bool{}
	for _, h := range all {
		groups[h.group] = true
	}
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		c := tallyOf(all, g)
		row := []string{g, fmt.Sprint(c.hangs), fmt.Sprint(c.goOn)}
		for _, v := range []verdict.Counts{c.why, c.recording} {
			row = append(row, fmt.Sprint(v[verdict.Right]), fmt.Sprint(v[verdict.Listed]), fmt.Sprint(v[verdict.Silent]),
				fmt.Sprint(v[verdict.Wrong]+v[verdict.Missing]))
		}
		kinds = append(kinds, row)
	}
	for _, row := range slices.Concat(totals, kinds) {
		t.Log(strings.Join(row, " | "))
	}
	switch {
	case *write && len(byNode) < len(partners):
		t.Log("NOT WRITTEN: docs/reliability.md has the answers with all nodes, and some are missing here")
	case *write:
		title := fmt.Sprintf("%d cases", len(all))
		if err := verdict.Write("../../../docs/reliability.md", "nodes", title, totals, kinds); err != nil {
			t.Fatal(err)
		}
	}
}
