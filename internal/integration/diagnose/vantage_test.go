package diagnose_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// began is the start time that all daemons report.
var began = time.Unix(1_700_000_000, 0)

// pid returns the process ID of a rank's program.
func pid(rank int) int { return 1000 + rank }

// state returns the state that a rank of zrlmpid reports.
func (e *engine) state() *state.Rank {
	n := e.n
	e.core.Begin(e.now())
	s := &state.Rank{RankInfo: state.RankInfo{Rank: n.rank, Role: state.RoleHost, Address: n.address.String()},
		Engine: e.core.Snapshot()}
	e.core.End().Clear()
	s.Engine.Uptime -= time.Second.Seconds() // the clock read 1 s at the start
	s.Engine.Describe()
	for i := range s.Engine.Peers {
		s.Engine.Peers[i].Transport = state.TransportUDP
	}
	switch {
	case n.kind == standin:
		s.Role, s.Kernel, s.KernelState = state.RoleStandin, "custom", state.KernelRunning
		if n.program.ended {
			s.KernelState = state.KernelFailed
			if n.program.failed == nil {
				s.KernelState = state.KernelEnded
			}
		}
	case !n.program.ended || n.c.kind.job:
		s.Attached = []state.Program{{PID: pid(n.rank), Stopped: n.program.stopped,
			Seconds: (n.c.now - n.program.began).Seconds()}}
	}
	return s
}

// members returns the members of the cluster as a node knows them. local lists the nodes served by the same daemon.
func (n *node) members(local []*node) (list []state.Member) {
	for rank := range n.c.nodes {
		m := state.Member{Rank: rank, Address: n.ranks[rank].String(), Kind: n.peerKind(rank),
			Transport: state.TransportUDP}
		for _, l := range local {
			if l.rank != rank {
				continue
			}
			m.Role = state.RoleHost
			if l.kind == standin {
				m.Role, m.Kernel = state.RoleStandin, "custom"
			}
		}
		list = append(list, m)
	}
	return list
}

// daemons groups the ranks of zrlmpid by the daemon that reports their states. Each host has a daemon, the stand-ins
// share one, and a job counts as one.
func (c *cluster) daemons() (groups [][]*node) {
	var standins []*node
	for _, n := range c.nodes {
		switch {
		case n.kind == standin:
			standins = append(standins, n)
		case n.kind == host && c.kind.job && len(groups) > 0:
			groups[0] = append(groups[0], n)
		case n.kind == host:
			groups = append(groups, []*node{n})
		}
	}
	if standins != nil {
		groups = append(groups, standins)
	}
	return groups
}

// source returns the answer of a daemon or a job.
func (c *cluster) source(group []*node) diagnosis.Source {
	name := fmt.Sprintf("daemon of rank %d", group[0].rank)
	s := &state.Status{Started: began, Uptime: (c.now - time.Second).Seconds()}
	if c.kind.job {
		s.Job = "job"
	}
	for _, n := range group {
		switch {
		case n.gone:
			continue
		case n.stopped && c.kind.job:
			s.Silent = append(s.Silent, n.rank)
			s.SilentProcesses = append(s.SilentProcesses,
				state.SilentProcess{Rank: n.rank, PID: pid(n.rank), Stopped: true})
			continue
		case n.stopped:
			continue
		}
		if s.Cluster == nil {
			s.Cluster = n.members(group)
		}
		s.Ranks = append(s.Ranks, *n.driver.(*engine).state())
		if f := n.program.failed; f != nil && !c.kind.job {
			failure := state.Failure{Time: began.Add(n.program.failedAt - time.Second), Rank: n.rank,
				Operation: state.OperationReceive, Reason: f.Error(), Count: 1}
			s.Failures = append(s.Failures, failure)
		}
	}
	if len(s.Ranks) == 0 {
		return diagnosis.Source{Name: name, Err: errors.New("connection refused")}
	}
	return diagnosis.Source{Name: name, Status: s}
}

// vantage is a set of sources with which a hang is diagnosed.
type vantage struct {
	name    string
	ranks   []int // ranks whose states are known
	sources []diagnosis.Source
}

// vantages returns a vantage for each daemon alone, and one for all daemons together.
func (c *cluster) vantages() (list []vantage) {
	groups := c.daemons()
	var all vantage
	all.name = "all"
	for _, g := range groups {
		src := c.source(g)
		all.sources = append(all.sources, src)
		if src.Status == nil {
			all.name = "some"
			continue
		}
		var known []int
		for i := range src.Status.Ranks {
			known = append(known, src.Status.Ranks[i].Rank)
		}
		all.ranks = append(all.ranks, known...)
		list = append(list, vantage{"one", known, []diagnosis.Source{src}})
	}
	switch {
	case len(all.ranks) == 0:
		return nil
	case len(groups) == 1:
		list[0].name = "all"
		return list
	}
	return append(list, all)
}

// asking returns the vantage of a rank that asks all other ranks over its links, which takes simulated time.
func (c *cluster) asking(n *node) vantage {
	e := n.driver.(*engine)
	others := n.others()
	answered := false
	var q *core.Question
	e.event(func() { q = e.core.Reports.Ask(others, func() { answered = true }) })
	c.run(c.now+2*time.Second, func() bool { return answered })
	e.event(func() { e.core.Reports.Cancel(q) })
	src := c.source([]*node{n})
	known := []int{n.rank}
	for i, rank := range others {
		a := state.AskResult{Rank: rank, AskedBy: n.rank}
		r := q.Reports[i]
		if r.Err == nil {
			a.Report, r.Err = state.DecodePublic(r.Report, rank, len(c.nodes))
		}
		if r.Err != nil {
			a.Reason, a.Unanswered = r.Err.Error(), errors.Is(r.Err, core.ErrNoReport)
		} else {
			known = append(known, rank)
		}
		src.Asked = append(src.Asked, a)
	}
	return vantage{"links", known, []diagnosis.Source{src}}
}
