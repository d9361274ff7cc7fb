package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// topPage is a look as it is shown.
type topPage struct {
	*look
	order  digest.Order
	filter string
}

// head is what is always seen: the daemon, its rates, and what is wrong.
func (p *topPage) head() []text {
	s, d := p.status, p.digest
	daemon := fmt.Sprintf("zrlmpid %s, process %d, up %s, %s, here %d",
		s.Version, s.PID, digest.Duration(s.Uptime), digest.Plural(len(s.Cluster), "rank"), len(s.Ranks))
	sums := fmt.Sprintf("%s messages/s, %s/s, %s retransmissions/s, %s drops/s; ", rate(&d.Total, d.Total.Messages), bytesRate(&d.Total),
		rate(&d.Total, d.Total.Retransmissions), rate(&d.Total, d.Total.Drops))
	sums += fmt.Sprintf("%d posted, %d unexpected", d.Posted, d.Unexpected)
	v := d.Verdict()
	look := map[string]style{"good": green, "warn": yellow, "bad": loud}[v.Level]
	verdict := text{{v.Text, look}}
	if v.More != "" {
		verdict = append(verdict, span{". " + v.More, plain})
	}
	return []text{{{daemon, bold}, {"  " + p.at.Format(time.TimeOnly), faint}}, {{sums, plain}}, verdict}
}

// body is what scrolls.
func (p *topPage) body() []text {
	lines := append(p.waits(), p.troubles()...)
	return append(append(lines, p.ranks()...), p.peers()...)
}

func heading(format string, args ...any) []text {
	return []text{nil, {{fmt.Sprintf(format, args...), bold}}}
}

func (p *topPage) waits() []text {
	f := digest.NewFilter(p.filter)
	t := table{names: []string{">AGE", ">RANK", "", "PEER", "WHAT"}}
	young, hidden := 0, 0
	for i := range p.digest.Waits {
		w := &p.digest.Waits[i]
		switch {
		case w.Age() == digest.Young:
			young++
			continue
		case !f.Wait(w):
			hidden++
			continue
		}
		look, peer := yellow, fmt.Sprint(w.Peer)
		if w.Age() == digest.Old || w.InCycle {
			look = red
		}
		if w.Peer == digest.AnyRank {
			peer = "any"
		}
		t.add(look, digest.Duration(w.Seconds), fmt.Sprint(w.Rank), "→", peer, waitWords(w))
	}
	lines := heading("WAITS")
	for _, c := range p.digest.Cycles {
		lines = append(lines, text{{"  deadlock? " + c.Text + " for " + digest.Duration(c.Seconds), loud}})
	}
	if len(t.rows) > 0 {
		lines = append(lines, t.lines()...)
	} else if hidden == 0 {
		lines = append(lines, text{{"  nobody waits for longer than a second", plain}})
	}
	if hidden > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s not shown: the filter", digest.Plural(hidden, "wait")), faint}})
	}
	if young > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s on the way for less than a second", digest.Plural(young, "message")), faint}})
	}
	return lines
}

// waitWords is a wait in words, and what else is known.
func waitWords(w *digest.Wait) string {
	s := w.Text
	if w.InCycle {
		s += ", deadlock?"
	}
	if w.Retransmissions > 0 {
		s += ", retransmitted " + digest.Plural(w.Retransmissions, "time")
	}
	if w.Queued > 0 {
		s += fmt.Sprintf(", %s behind it", digest.Plural(w.Queued, "message"))
	}
	return s
}

func (p *topPage) troubles() []text {
	if len(p.digest.Troubles) == 0 {
		return nil
	}
	lines := heading("BROKEN")
	for _, t := range p.digest.Troubles {
		look := yellow
		if t.Severity == digest.Bad {
			look = red
		}
		line := text{{"  " + t.Text, look}}
		if t.Do != "" {
			line = append(line, span{" (" + t.Do + ")", plain})
		}
		lines = append(lines, line)
	}
	return lines
}

func (p *topPage) ranks() []text {
	f := digest.NewFilter(p.filter)
	t := table{names: []string{">RANK", "ROLE", "STATE", "TRANSPORTS", ">POSTED", ">UNEXPECTED", ">MSG/S", ">BYTES/S", "PROGRAMS", "ADDRESS"}}
	for i := range p.digest.Ranks {
		r := &p.digest.Ranks[i]
		if !f.Rank(r) {
			continue
		}
		look := plain
		if r.Failed() {
			look = red
		}
		programs := make([]string, len(r.Programs))
		for i, prog := range r.Programs {
			programs[i] = fmt.Sprint(prog.PID)
		}
		t.add(look, fmt.Sprint(r.Rank), strings.TrimSpace(r.Role+" "+r.Kernel), dash(r.KernelState), dash(strings.Join(r.Transports, ",")),
			fmt.Sprint(r.Posted), fmt.Sprint(r.Unexpected), rate(&r.Rates, r.Rates.Messages), bytesRate(&r.Rates),
			dash(strings.Join(programs, ",")), r.Address)
	}
	return append(heading("LOCAL RANKS"), t.lines()...)
}

func (p *topPage) peers() []text {
	f := digest.NewFilter(p.filter)
	quiet, hidden := 0, 0
	var ps []digest.Peer
	for i := range p.digest.Peers {
		peer := &p.digest.Peers[i]
		switch {
		case !f.Peer(peer):
			hidden++
		case !peer.Seen():
			quiet++
		default:
			ps = append(ps, *peer)
		}
	}
	digest.Sort(ps, p.order)
	// What is worth most comes first: a narrow terminal cuts the rest off.
	t := table{names: []string{">RANK", ">PEER", "STATE", ">MSG/S", ">BYTES/S", ">RETRANSMISSIONS", ">DROPS", ">ROUND TRIP", ">FAILED", ">SENT", ">RECEIVED", "KIND", "PROFILE", "VIA", "ADDRESS"}}
	for i := range ps {
		peer := &ps[i]
		state, look := peerState(peer)
		t.add(look, fmt.Sprint(peer.Rank), fmt.Sprint(peer.Peer), state, rate(&peer.Rates, peer.Rates.Messages), bytesRate(&peer.Rates),
			fmt.Sprint(peer.Retransmissions), fmt.Sprint(peer.Drops), strings.Replace(digest.Latency(peer.RoundTrip), "–", "-", 1), fmt.Sprint(peer.Failed),
			fmt.Sprint(peer.Sent), fmt.Sprint(peer.Received), peer.Kind, peer.Profile, dash(peer.Transport), peer.Address)
	}
	lines := append(heading("PEERS by %v", p.order), t.lines()...)
	if quiet > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s with which nothing has happened", digest.Plural(quiet, "peer")), faint}})
	}
	if hidden > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s not shown: the filter", digest.Plural(hidden, "peer")), faint}})
	}
	return lines
}

// peerState is how a peer is, in a word or two.
func peerState(p *digest.Peer) (string, style) {
	switch age := digest.AgeOf(p.Oldest); {
	case p.Refuses != "":
		return "refused", red
	case p.NetworkError != "":
		return "network error", red
	case age == digest.Old:
		return "waits " + digest.Duration(p.Oldest), red
	case age == digest.Waiting:
		return "waits " + digest.Duration(p.Oldest), yellow
	case p.Unexpected > 0:
		return fmt.Sprintf("%d unexpected", p.Unexpected), plain
	case p.Rates.Messages > 0:
		return "moves", plain
	}
	return "idle", faint
}

// rate is one of some rates in words, or a dash if they are not known.
func rate(r *digest.Rates, value float64) string {
	if !r.Known {
		return "-"
	}
	return digest.Quantity(value)
}

func bytesRate(r *digest.Rates) string {
	if !r.Known {
		return "-"
	}
	return digest.Bytes(r.Bytes)
}
