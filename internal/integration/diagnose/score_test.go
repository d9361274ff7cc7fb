package diagnose_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	kit "github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
)

// verdict is the verdict on an answer.
type verdict = kit.Verdict

const (
	right    = kit.Right
	listed   = kit.Listed
	silent   = kit.Silent
	missing  = kit.Missing
	wrong    = kit.Wrong
	verdicts = wrong + 1
)

// answer is the diagnosis at one vantage, at one moment of a run.
type answer struct {
	seed     uint64
	cluster  string
	names    []string // names of the injections
	truths   []truth
	vantage  string
	after    time.Duration
	verdict  verdict
	class    string // class of the truth, if the run has a single fault
	evidence string
	text     string
	trigger  time.Duration // when the fault first took effect
	// possible is the longest list of causes that contains the truth, and listed the labels of its causes. If the run
	// has a single fault, real contains the labels of everything that is true in the run.
	possible     []diagnosis.Possibility
	listed, real []string
	// extra contains the labels in listed that are true in no run with the same evidence.
	extra []string
	// isUndecided means that the answer is not certain, although only one class of causes produces its evidence.
	isUndecided bool
}

// moments lists the times after the fault first took effect at which a hang is diagnosed.
var moments = []time.Duration{1500 * time.Millisecond, 4 * time.Second, 9 * time.Second, 30 * time.Second}

// simulate runs the cluster of a seed with a fault, and returns the answers at all vantages and moments.
func simulate(seed uint64) (answers []answer) {
	c := prepare(seed)
	names, truths := c.inject()
	c.observe(moments, func(v vantage, after time.Duration) {
		a := answer{seed: seed, cluster: c.kind.name, names: names, truths: truths, vantage: v.name,
			after: after, trigger: c.trigger, evidence: c.evidence(v.ranks)}
		if c.hangsAt(v) {
			c.score(&a, v)
			answers = append(answers, a)
		}
	})
	return answers
}

// prepare creates the cluster of a seed, including its programs.
func prepare(seed uint64) *cluster {
	k := &clusterKinds[seed%uint64(len(clusterKinds))]
	c := newCluster(seed, k)
	var fitting []*pattern
	for i := range patterns {
		if patterns[i].fits(k) {
			fitting = append(fitting, &patterns[i])
		}
	}
	p := fitting[c.rng.IntN(len(fitting))]
	words := lengths[c.rng.IntN(len(lengths))]
	for _, n := range c.nodes {
		n.program.round = func(round int) []step {
			var list []step
			for _, s := range p.round(len(c.nodes), n.rank, words, round) {
				if s.call == 0 || c.rng.IntN(2) == 0 {
					list = append(list, step{computes: time.Duration(1+c.rng.IntN(4000)) * time.Microsecond})
				}
				list = append(list, s)
			}
			return append(list, step{computes: 5 * time.Millisecond})
		}
	}
	return c
}

// observe runs a cluster with a fault. At each moment at which a program hangs, it calls look for each vantage. The
// vantages include ranks that question the other ranks over their links.
func (c *cluster) observe(moments []time.Duration, look func(v vantage, after time.Duration)) {
	if !c.runToFault() {
		return
	}
	for _, after := range moments {
		c.run(c.trigger+after, func() bool { return false })
		if len(c.hung()) == 0 { // the cluster has recovered
			break
		}
		for _, v := range c.vantages() {
			look(v, after)
		}
		for _, n := range c.nodes {
			if c.asks(n) {
				look(c.asking(n), after)
			}
		}
	}
}

// runToFault starts a cluster and runs it until the fault takes effect. It returns false if the fault never does.
func (c *cluster) runToFault() bool {
	c.begin()
	limit := 2 * time.Second
	if c.suspect != 0 { // faults may be later there
		limit *= 2
	}
	c.run(c.now+limit, func() bool { return c.trigger != 0 })
	return c.trigger != 0
}

// begin starts a cluster, and lets a rank ask before the fault if it is to do so.
func (c *cluster) begin() {
	c.start()
	if n := c.asksBefore; n != nil && c.asks(n) {
		c.run(c.now+waited, func() bool { return false })
		c.asking(n)
	}
}

// asks reports whether a rank can question the other ranks over its links.
func (c *cluster) asks(n *node) bool { return c.kind.extended && !c.kind.job && !n.gone && !n.stopped }

// inject injects one fault, or two faults in a tenth of the runs.
func (c *cluster) inject() (names []string, truths []truth) {
	all := injections()
	n := 1
	if c.rng.IntN(10) == 0 {
		n = 2
	}
	for len(truths) < n {
		i := all[c.rng.IntN(len(all))]
		if t, ok := i.arm(c); ok {
			names, truths = append(names, i.name), append(truths, t)
		}
	}
	return names, truths
}

// waited is the minimum age of a call that counts as a hang.
const waited = 1200 * time.Millisecond

// hung returns the ranks whose programs hang in a call.
func (c *cluster) hung() []int { return c.waiting(waited) }

// waiting returns the ranks whose programs are in a call of at least the given age.
func (c *cluster) waiting(age time.Duration) (ranks []int) {
	for _, n := range c.nodes {
		if p := n.program; !n.gone && p.current != nil && c.now-p.since >= age {
			ranks = append(ranks, n.rank)
		}
	}
	return ranks
}

// hangsAt reports whether a vantage includes the state of a rank that hangs.
func (c *cluster) hangsAt(v vantage) bool {
	_, hangs := c.waitAt(v.ranks, waited)
	return hangs
}

// waitAt returns the start time of the earliest call of at least the given age in which one of the ranks waits. It
// returns false if no rank waits whose state can be asked.
func (c *cluster) waitAt(ranks []int, age time.Duration) (since time.Duration, ok bool) {
	for _, rank := range c.waiting(age) {
		n := c.nodes[rank]
		idle := n.kind == standin && n.program.current.receives // a stand-in that waits for work is idle
		if !slices.Contains(ranks, rank) || !n.kind.ours() || n.stopped || idle {
			continue
		}
		if !ok || n.program.since < since {
			since, ok = n.program.since, true
		}
	}
	return since, ok
}

// score compares the diagnosis at a vantage with the truth.
func (c *cluster) score(a *answer, v vantage) {
	d := diagnosis.Diagnose(v.sources, time.Second)
	consequences := c.consequences(v)
	truths := append(slices.Clone(a.truths), consequences...)
	if len(a.truths) == 1 {
		a.class = c.class(a.truths[0], v, consequences)
		if seeks() {
			a.real = c.labels(truths, v)
		}
	}
	a.text = d.Text()
	a.verdict = silent
	best := silent
	for i := range d.Findings {
		f := &d.Findings[i]
		var is verdict
		switch found := c.matches(truths, f.Cause, f.Rank, f.Peer); {
		case f.Certain && found:
			is = right
		case f.Certain:
			is = wrong
		case slices.ContainsFunc(truths, func(t truth) bool { return t.fault == faultUnnamed }): // never listed
			is = listed
		case slices.ContainsFunc(f.Possible, func(p diagnosis.Possibility) bool {
			return c.matches(truths, string(p.Cause),
				p.Rank, p.Peer)
		}):
			is = listed
			if len(f.Possible) > len(a.possible) {
				a.possible = f.Possible
			}
		default:
			is = missing
		}
		switch {
		case best == silent, is == wrong:
			best = is
		case best != wrong && is < best:
			best = is
		}
	}
	a.verdict = best
	for i := range a.possible {
		a.listed = append(a.listed, c.label(&a.possible[i], v))
	}
}

// consequences returns truths that follow from the injected cause: other ranks that wait, compute, or have a failed
// call.
func (c *cluster) consequences(v vantage) (list []truth) {
	for _, n := range c.nodes {
		p := n.program
		switch {
		case p.failed != nil:
			list = append(list, truth{fault: faultCallFailed, rank: n.rank, other: -1})
		case !n.gone && p.current != nil && c.now-p.since > waited/2 && !slices.Contains(v.ranks, n.rank):
			list = append(list, truth{fault: faultWaits, rank: n.rank, other: -1})
		case !n.gone && !n.stopped && !p.stopped && !p.ended && p.current == nil: // between two calls
			list = append(list, truth{fault: faultComputes, rank: n.rank, other: -1})
		}
	}
	return list
}

// accepted lists the causes by which a diagnosis may name each fault.
var accepted = map[fault][]string{
	faultLost:     {diagnosis.LostPacket, diagnosis.PacketsBlocked},
	faultLosing:   {diagnosis.LostPacket, diagnosis.PacketsBlocked},
	faultBlocked:  {diagnosis.PacketsBlocked, diagnosis.LostPacket},
	faultCorrupt:  {diagnosis.PacketsBlocked, diagnosis.LostPacket, diagnosis.PacketDropped},
	faultCut:      {diagnosis.PacketsBlocked, diagnosis.LostPacket},
	faultCopy:     {diagnosis.DeadEnd},
	faultDelay:    {diagnosis.LostPacket, diagnosis.PacketsBlocked},
	faultMap:      {diagnosis.WrongAddress},
	faultNAT:      {diagnosis.WrongAddress, diagnosis.PacketsBlocked, diagnosis.LostPacket},
	faultProfile:  {diagnosis.WrongProfile},
	faultDatatype: {diagnosis.DatatypeMismatch, diagnosis.OtherCall},
	faultCount:    {diagnosis.CountMismatch, diagnosis.OtherCall},
	faultTag:      {diagnosis.TagMismatch, diagnosis.OtherCall},
	faultComm:     {diagnosis.CommMismatch, diagnosis.OtherCall},
	faultOrder: {diagnosis.CallOrder, diagnosis.WaitCycle, diagnosis.ProgramComputes, diagnosis.OtherCall,
		diagnosis.KernelWaits},
	faultRoot:       {diagnosis.RootMismatch, diagnosis.OtherCall},
	faultCall:       {diagnosis.CallOrder, diagnosis.OtherCall},
	faultCycle:      {diagnosis.WaitCycle, diagnosis.OtherCall, diagnosis.KernelWaits},
	faultComputes:   {diagnosis.ProgramComputes},
	faultEnded:      {diagnosis.ProcessEnded, diagnosis.NotAttached, diagnosis.KernelFailed},
	faultStopped:    {diagnosis.ProcessStopped},
	faultDown:       {diagnosis.ProcessEnded},
	faultRestarted:  {diagnosis.Restarted},
	faultLate:       {diagnosis.StartedLate, diagnosis.Restarted, diagnosis.ProcessEnded},
	faultMTU:        {diagnosis.PathMTU},
	faultBuffer:     {diagnosis.PacketsBlocked, diagnosis.LostPacket},
	faultRole:       {diagnosis.KernelFailed, diagnosis.ProcessEnded},
	faultWaits:      {diagnosis.WaitsElsewhere},
	faultCallFailed: {diagnosis.CallFailed, diagnosis.NotAttached, diagnosis.ProcessEnded, diagnosis.KernelFailed},
}

// matches reports whether one of the truths has the given cause at a rank, or between that rank and a peer.
func (c *cluster) matches(truths []truth, cause string, rank, peer int) bool {
	return slices.ContainsFunc(truths, func(t truth) bool {
		if !slices.Contains(accepted[t.fault], cause) {
			return false
		}
		switch {
		case cause == diagnosis.WaitCycle:
			return true
		case t.other >= 0:
			return rank == t.rank && peer == t.other || rank == t.other && peer == t.rank
		}
		return rank == t.rank || peer == t.rank
	})
}

func (t truth) String() string {
	s := fmt.Sprintf("%s: rank %d", t.fault, t.rank)
	if t.other >= 0 {
		s += fmt.Sprintf(", rank %d", t.other)
	}
	if t.packet != 0 {
		s += fmt.Sprintf(", %v", t.packet)
	}
	return s
}

// class names the cause that a certain diagnosis at the vantage could find. If the rank at fault is not the one that a
// hung rank waits for, that is WaitsElsewhere. For lost packets, it includes the direction.
func (c *cluster) class(t truth, v vantage, consequences []truth) string {
	known := func(rank int) bool { return slices.Contains(v.ranks, rank) }
	cause := accepted[t.fault]
	if len(cause) == 0 {
		return string(t.fault)
	}
	for _, rank := range c.hung() { // a hung rank may wait for a rank other than the one at fault
		if n := c.nodes[rank]; known(rank) && n.kind.ours() && n.program.current.call == 0 {
			if peer := n.program.current.peer; peer != t.rank && peer != t.other && rank != t.rank {
				return diagnosis.WaitsElsewhere
			}
			break
		}
	}
	direction := ""
	if t.other >= 0 && (slices.Contains(cause, diagnosis.PacketsBlocked) || t.fault == faultMTU) {
		direction = " out"
		if !known(t.rank) {
			direction = " in"
		}
	}
	return cause[0] + direction
}
