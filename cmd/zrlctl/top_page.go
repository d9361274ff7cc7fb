package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// topPage is the displayed form of a sample.
type topPage struct {
	*sample
	order  digest.Order
	filter string
	// width is the width of the terminal in characters; 0 means no wrapping.
	width int
}

// hanging is the indentation of all lines but the first of a wrapped line.
const hanging = 4

// head returns the lines that do not scroll. They show the daemon and the verdict.
func (p *topPage) head() []text {
	s, d := p.status, p.digest
	daemon := fmt.Sprintf("zrlmpid %s, process %d", s.Version, s.PID)
	if s.Job != "" {
		daemon = "job " + s.Job
	}
	daemon += fmt.Sprintf(", uptime %s, %s (local: %d)", words.Duration(s.Uptime), words.Plural(len(s.Cluster), "rank"),
		len(s.Ranks))
	v := d.Verdict()
	style := map[digest.Level]style{digest.Good: green, digest.Warn: yellow, digest.Bad: loud}[v.Level]
	verdict := text{{v.Text, style}}
	if v.More != "" {
		verdict = append(verdict, span{". " + v.More, plain})
	}
	return append([]text{{{daemon, bold}, {"  " + p.at.Format(time.TimeOnly), faint}}},
		verdict.wrap(p.width, hanging)...)
}

// body returns the lines that scroll. Causes come before numbers.
func (p *topPage) body() []text {
	lines := append(p.causes(), p.traffic()...)
	lines = append(lines, p.waits()...)
	lines = append(lines, p.problems()...)
	return append(append(lines, p.ranks()...), p.peers()...)
}

// maxCauses is the maximum number of causes shown. zrlctl why shows all causes.
const maxCauses = 4

// traffic returns the rates of all ranks.
func (p *topPage) traffic() []text {
	d := p.digest
	sums := fmt.Sprintf("%s messages/s, %s/s, %s retransmissions/s, %s drops/s; %d posted, %d unexpected",
		rate(&d.Total, d.Total.Messages), bytesRate(&d.Total), rate(&d.Total, d.Total.Retransmissions),
		rate(&d.Total, d.Total.Drops), d.Posted, d.Unexpected)
	lines := text{{sums, plain}}.wrap(p.width, hanging)
	if len(p.sample.causes) > 0 {
		lines = append([]text{nil}, lines...)
	}
	return lines
}

// causes returns the lines with the reasons for waits, or nil.
func (p *topPage) causes() []text {
	if len(p.sample.causes) == 0 {
		return nil
	}
	lines := heading("CAUSES")
	for i := range p.sample.causes[:min(len(p.sample.causes), maxCauses)] {
		f := &p.sample.causes[i]
		cause := text{{"  " + words.Sentence(f.Text), loud}, {" (" + f.Step + ")", plain}}
		lines = append(lines, cause.wrap(p.width, hanging)...)
	}
	if more := len(p.sample.causes) - maxCauses; more > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s: zrlctl why", words.Plural(more, "more cause")), faint}})
	}
	return lines
}

func heading(format string, args ...any) []text {
	return []text{nil, {{fmt.Sprintf(format, args...), bold}}}
}

func (p *topPage) waits() []text {
	t := table{names: []string{">AGE", ">RANK", "", "PEER", "WHAT"}}
	fit, hidden := digest.NewFilter(p.filter).Waits(p.digest)
	for _, w := range fit {
		style, peer := yellow, fmt.Sprint(w.Peer)
		if w.Age() == digest.Long || w.InCycle {
			style = red
		}
		if w.Peer == digest.AnyRank {
			peer = "any"
		}
		t.add(style, words.Duration(w.Seconds), fmt.Sprint(w.Rank), "→", peer, waitText(w))
	}
	lines := heading("WAITING RANKS")
	for _, c := range p.digest.Cycles {
		deadlock := text{{"  possible deadlock: " + c.Text + " for " + words.Duration(c.Seconds), loud}}
		lines = append(lines, deadlock.wrap(p.width, hanging)...)
	}
	if len(t.rows) > 0 {
		lines = append(lines, t.lines(p.width)...)
	} else if hidden == 0 {
		none := "  no rank is waiting"
		if p.digest.Doubtful {
			none = "  no wait is known"
		}
		lines = append(lines, text{{none, plain}})
	}
	if hidden > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s hidden by the filter", words.Plural(hidden, "wait")), faint}})
	}
	if brief := p.digest.Brief(); brief > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s in progress for less than 1 s", words.Plural(brief, "message")),
			faint}})
	}
	return lines
}

// waitText describes a wait.
func waitText(w *digest.Wait) string {
	s := w.Text
	if w.InCycle {
		s += ", possible deadlock"
	}
	if d := w.Detail(); d != "" {
		s += ", " + d
	}
	return s
}

func (p *topPage) problems() []text {
	lines := heading("PROBLEMS")
	for _, problem := range p.digest.Problems {
		style := yellow
		if problem.Severity == digest.Failure {
			style = red
		}
		line := text{{fmt.Sprintf("  %v: %s", problem.Severity, problem.Text), style}}
		if problem.Action != "" {
			line = append(line, span{" (" + problem.Action + ")", plain})
		}
		lines = append(lines, line.wrap(p.width, hanging)...)
	}
	if len(p.digest.Problems) == 0 {
		lines = append(lines, text{{"  " + digest.NoProblems(p.status), plain}})
	}
	return lines
}

func (p *topPage) ranks() []text {
	t := table{names: []string{">RANK", "ROLE", "STATE", "TRANSPORTS", ">POSTED", ">UNEXPECTED", ">MSG/S", ">BYTES/S",
		"PROGRAMS", "ADDRESS"}}
	listed, idle := digest.NewFilter(p.filter).Ranks(p.digest, p.filter != "")
	for _, r := range listed {
		style := plain
		if r.Failed() {
			style = red
		}
		programs := make([]string, len(r.Attached))
		for i, prog := range r.Attached {
			programs[i] = fmt.Sprint(prog.PID)
		}
		t.add(style, fmt.Sprint(r.Rank), strings.TrimSpace(string(r.Role)+" "+r.Kernel), dash(r.KernelState),
			dash(r.TransportText(",")),
			fmt.Sprint(r.Posted), fmt.Sprint(r.Unexpected), rate(&r.Rates, r.Rates.Messages), bytesRate(&r.Rates),
			dash(strings.Join(programs, ",")), r.Address)
	}
	lines := append(heading("LOCAL RANKS"), t.lines(p.width)...)
	if len(idle) > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s: %s", words.Plural(len(idle), "idle rank"),
			digest.RankList(idle)), faint}})
	}
	return lines
}

func (p *topPage) peers() []text {
	ps, silent, hidden := digest.NewFilter(p.filter).Peers(p.digest, p.order, false)
	// A narrow terminal cuts off the last columns.
	t := table{names: []string{">RANK", ">PEER", "STATE", ">MSG/S", ">BYTES/S", ">RETRANSMISSIONS", ">DROPS",
		">ROUND TRIP", ">FAILED", ">SENT", ">RECEIVED", "KIND", "PROFILE", "VIA", "ADDRESS"}}
	for _, peer := range ps {
		state, style := peerState(peer)
		t.add(style, fmt.Sprint(peer.Rank), fmt.Sprint(peer.Peer), state, rate(&peer.Rates, peer.Rates.Messages),
			bytesRate(&peer.Rates),
			fmt.Sprint(peer.Retransmissions), fmt.Sprint(peer.Drops),
			strings.Replace(words.Latency(peer.RoundTrip()), "–", "-", 1), fmt.Sprint(peer.Failed),
			fmt.Sprint(peer.Sent), fmt.Sprint(peer.Received), string(peer.Kind), string(peer.Profile),
			dash(peer.Transport), peer.Address)
	}
	lines := append(heading("PEERS, sorted by %v", p.order), t.lines(p.width)...)
	if silent > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s not shown", words.Plural(silent, "silent peer")), faint}})
	}
	if hidden > 0 {
		lines = append(lines, text{{fmt.Sprintf("  %s hidden by the filter", words.Plural(hidden, "peer")), faint}})
	}
	return lines
}

// peerState returns the state of a peer in a few words, and its style.
func peerState(p *digest.Peer) (string, style) {
	switch age := digest.AgeOf(p.OldestWait); {
	case p.Refuses != "":
		return "refused", red
	case p.NetworkError != "":
		return "network error", red
	case age == digest.Long:
		return "waiting " + words.Duration(p.OldestWait), red
	case age == digest.Medium:
		return "waiting " + words.Duration(p.OldestWait), yellow
	case p.Unexpected > 0:
		return fmt.Sprintf("%d unexpected", p.Unexpected), plain
	case p.Rates.Messages > 0:
		return "active", plain
	}
	return "idle", faint
}

// rate formats value, which is one of the rates r. It returns a dash if the rates are unknown.
func rate(r *digest.Rates, value float64) string {
	if !r.Known {
		return "-"
	}
	return words.Quantity(value)
}

func bytesRate(r *digest.Rates) string {
	if !r.Known {
		return "-"
	}
	return words.Bytes(r.Bytes)
}
