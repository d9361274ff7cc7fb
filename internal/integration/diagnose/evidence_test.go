package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// evidence describes everything that can be observed at a vantage, derived only from packets, times, calls and process
// states. Causes with the same evidence cannot be distinguished there. For a rank whose daemon is not at the vantage,
// the kind comes from the rank map, which does not distinguish stand-ins from hosts.
func (c *cluster) evidence(ranks []int) string {
	var b strings.Builder
	what := func(rank int) string {
		if kind := c.nodes[rank].kind; slices.Contains(ranks, rank) || !kind.ours() {
			return kind.String()
		}
		return "software"
	}
	for rank := range c.nodes {
		if !slices.Contains(ranks, rank) {
			b.WriteString(what(rank) + " ")
		}
	}
	switch {
	case c.kind.job:
		b.WriteString("job ")
	case c.kind.extended:
		b.WriteString("extended ")
	}
	if c.attached {
		b.WriteString("attached")
	}
	if c.overSocket {
		b.WriteString(" over a socket")
	}
	for _, rank := range ranks {
		n := c.nodes[rank]
		fmt.Fprintf(&b, " | %s %s %s", n.kind, n.processState(), n.callState(what))
		for _, peer := range n.others() {
			if s := n.callEvidence(peer); s != "" {
				fmt.Fprintf(&b, " %s[%s]", what(peer), s)
			}
		}
	}
	for _, n := range c.nodes { // tools can see all processes on their host, even if a rank does not answer
		if c.kind.job && !slices.Contains(ranks, n.rank) {
			fmt.Fprintf(&b, " | %s", n.processState())
		}
	}
	return b.String()
}

func (n *node) processState() string {
	switch {
	case n.gone:
		return "no process"
	case n.stopped, n.program.stopped:
		return "stopped"
	case n.program.failed != nil:
		return "failed"
	case n.program.ended:
		return "ended"
	}
	return "runs"
}

func (n *node) callState(kind func(rank int) string) string {
	s := n.seenCall()
	if s == nil {
		return "in no call"
	}
	if s.call != 0 {
		return fmt.Sprintf("%v %d root %d", s.call, s.tag, s.peer)
	}
	long := "short"
	if protocol.WordLen*s.words > protocol.MaxDatagram-protocol.HeaderLen {
		long = "long"
	}
	what := "sends to"
	if s.receives {
		what = "receives from"
	}
	return fmt.Sprintf("%s %s, %s, %v, tag %d comm %d", what, kind(s.peer), long, s.datatype, s.tag, s.comm)
}

// seenCall returns the program's call that its daemon can observe, or nil. If the program attaches over a socket, the
// daemon only knows the posted operation, not whether the program waits for it.
func (n *node) seenCall() *step {
	if n.c.overSocket && n.kind == host {
		return n.program.posted
	}
	return n.program.current
}

// callEvidence describes the packets exchanged with a peer since the node's call began. It lists the packet types in
// the order of first appearance, with a + for more than one, and shows whether the peer had sent packets before.
func (n *node) callEvidence(peer int) string {
	p := n.program
	s := n.seenCall()
	if s != nil && s.call == 0 && s.peer != peer {
		return ""
	}
	since := p.since
	if s == nil {
		since = n.c.now - time.Second
	}
	var parts []string
	before, last := false, time.Duration(0)
	for i := range n.seen {
		d := &n.seen[i]
		sent := d.out && d.to == n.ranks[peer]
		from := core.UnknownPeer
		if !d.out {
			from = n.rankOf(d.from)
		}
		stranger := !d.out && from == core.UnknownPeer
		if !sent && from != peer && !stranger {
			continue
		}
		if !d.out {
			last = d.at
		}
		if d.at < since {
			before = before || from == peer
			continue
		}
		part := "<"
		switch {
		case sent:
			part = ">"
		case stranger:
			part = "?"
		}
		part += d.kind.String()
		if d.continues {
			part += "…"
		}
		if i := slices.IndexFunc(parts, func(p string) bool { return strings.TrimSuffix(p, "+") == part }); i >= 0 {
			parts[i] = part + "+"
			continue
		}
		parts = append(parts, part)
	}
	quiet := "quiet"
	if n.c.now-last < time.Second {
		quiet = "talks"
	}
	was := "new"
	if before {
		was = "known"
	}
	return was + " " + quiet + " " + strings.Join(parts, " ")
}
