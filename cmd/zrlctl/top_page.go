package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// topPage formats a sample for display.
type topPage struct {
	*sample
	order  digest.Order
	filter string
	// width is the width of the terminal in characters. 0 disables wrapping.
	width int
}

// hangingIndent is the indentation of the second and all further rows of a wrapped line.
const hangingIndent = 4

// header returns the lines that do not scroll. They show the daemon and the verdict.
func (p *topPage) header() []styledLine {
	status, d := p.status, p.digest
	daemon := fmt.Sprintf("zrlmpid %s, process %d", status.Version, status.PID)
	if status.Job != "" {
		daemon = "job " + status.Job
	}
	daemon += fmt.Sprintf(", uptime %s, %s (local: %d)", words.Duration(status.Uptime),
		words.Plural(len(status.Cluster), "rank"),
		len(status.Ranks))
	v := d.Verdict()
	style := map[digest.Level]style{digest.LevelGood: green, digest.LevelWarn: yellow, digest.LevelBad: boldRed}[v.Level]
	verdict := styledLine{{v.Text, style}}
	if v.More != "" {
		verdict = append(verdict, span{". " + v.More, plain})
	}
	return append([]styledLine{{{daemon, bold}, {"  " + p.takenAt.Format(time.TimeOnly), faint}}},
		verdict.wrap(p.width, hangingIndent)...)
}

// body returns the lines that scroll. It puts the causes of waits before the numbers.
func (p *topPage) body() []styledLine {
	lines := append(p.causeLines(), p.trafficLines()...)
	lines = append(lines, p.waitLines()...)
	lines = append(lines, p.problemLines()...)
	return append(append(lines, p.rankLines()...), p.peerLines()...)
}

// maxCauses is the maximum number of causes shown. zrlctl why shows all causes.
const maxCauses = 4

// trafficLines returns the rates of all ranks.
func (p *topPage) trafficLines() []styledLine {
	d := p.digest
	sums := fmt.Sprintf("%s messages/s, %s/s, %s retransmissions/s, %s drops/s; %d posted, %d unexpected",
		formatRate(&d.Total, d.Total.Messages), formatByteRate(&d.Total), formatRate(&d.Total, d.Total.Retransmissions),
		formatRate(&d.Total, d.Total.Drops), d.Posted, d.Unexpected)
	lines := styledLine{{sums, plain}}.wrap(p.width, hangingIndent)
	if len(p.sample.causes) > 0 {
		lines = append([]styledLine{nil}, lines...)
	}
	return lines
}

// causeLines returns the lines with the reasons for waits, or nil if no rank waits.
func (p *topPage) causeLines() []styledLine {
	if len(p.sample.causes) == 0 {
		return nil
	}
	lines := heading("CAUSES")
	for i := range p.sample.causes[:min(len(p.sample.causes), maxCauses)] {
		f := &p.sample.causes[i]
		cause := styledLine{{"  " + words.Sentence(f.Text), boldRed}, {" (" + f.Step + ")", plain}}
		lines = append(lines, cause.wrap(p.width, hangingIndent)...)
	}
	if more := len(p.sample.causes) - maxCauses; more > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s: zrlctl why", words.Plural(more, "more cause")), faint}})
	}
	return lines
}

func heading(format string, args ...any) []styledLine {
	return []styledLine{nil, {{fmt.Sprintf(format, args...), bold}}}
}

func (p *topPage) waitLines() []styledLine {
	t := table{names: []string{">AGE", ">RANK", "", "PEER", "WHAT"}}
	fit, hidden := digest.NewFilter(p.filter).Waits(p.digest)
	for _, wait := range fit {
		style, peer := yellow, fmt.Sprint(wait.Peer)
		if wait.Age() == digest.Long || wait.InCycle {
			style = red
		}
		if wait.Peer == digest.AnyRank {
			peer = "any"
		}
		t.addRow(style, words.Duration(wait.Seconds), fmt.Sprint(wait.Rank), "→", peer, waitText(wait))
	}
	lines := heading("WAITING RANKS")
	for _, c := range p.digest.Cycles {
		deadlock := styledLine{{"  possible deadlock: " + c.Text + " for " + words.Duration(c.Seconds), boldRed}}
		lines = append(lines, deadlock.wrap(p.width, hangingIndent)...)
	}
	if len(t.rows) > 0 {
		lines = append(lines, t.lines(p.width)...)
	} else if hidden == 0 {
		none := "  no rank is waiting"
		if p.digest.Doubtful {
			none = "  no wait is known"
		}
		lines = append(lines, styledLine{{none, plain}})
	}
	if hidden > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s hidden by the filter", words.Plural(hidden, "wait")), faint}})
	}
	if brief := p.digest.Brief(); brief > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s in progress for less than 1 s", words.Plural(brief, "message")),
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
		s += " (" + d + ")"
	}
	return s
}

func (p *topPage) problemLines() []styledLine {
	lines := heading("PROBLEMS")
	for _, problem := range p.digest.Problems {
		style := yellow
		if problem.Severity == digest.Failure {
			style = red
		}
		line := styledLine{{fmt.Sprintf("  %v: %s", problem.Severity, problem.Text), style}}
		if problem.Action != "" {
			line = append(line, span{" (" + problem.Action + ")", plain})
		}
		lines = append(lines, line.wrap(p.width, hangingIndent)...)
	}
	if len(p.digest.Problems) == 0 {
		lines = append(lines, styledLine{{"  " + digest.NoProblems(p.status), plain}})
	}
	return lines
}

func (p *topPage) rankLines() []styledLine {
	t := table{names: []string{">RANK", "ROLE", "STATE", "TRANSPORTS", ">POSTED", ">UNEXPECTED", ">MSG/S", ">BYTES/S",
		"PROGRAMS", "ADDRESS"}}
	listed, idle := digest.NewFilter(p.filter).Ranks(p.digest, p.filter != "")
	for _, rank := range listed {
		style := plain
		if rank.Failed() {
			style = red
		}
		programs := make([]string, len(rank.Attached))
		for i, prog := range rank.Attached {
			programs[i] = fmt.Sprint(prog.PID)
		}
		t.addRow(style, fmt.Sprint(rank.Rank), strings.TrimSpace(string(rank.Role)+" "+rank.Kernel), orDash(rank.KernelState),
			orDash(rank.TransportText(",")),
			fmt.Sprint(rank.Posted), fmt.Sprint(rank.Unexpected), formatRate(&rank.Rates,
				rank.Rates.Messages), formatByteRate(&rank.Rates),
			orDash(strings.Join(programs, ",")), rank.Address)
	}
	lines := append(heading("LOCAL RANKS"), t.lines(p.width)...)
	if len(idle) > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s: %s", words.Plural(len(idle), "idle rank"),
			digest.RankList(idle)), faint}})
	}
	return lines
}

func (p *topPage) peerLines() []styledLine {
	ps, silent, hidden := digest.NewFilter(p.filter).Peers(p.digest, p.order, false)
	// A narrow terminal cuts off the last columns.
	t := table{names: []string{">RANK", ">PEER", "STATE", ">MSG/S", ">BYTES/S", ">RETRANSMISSIONS", ">DROPS",
		">ROUND TRIP", ">FAILED", ">SENT", ">RECEIVED", "KIND", "PROFILE", "VIA", "ADDRESS"}}
	for _, peer := range ps {
		state, style := peerState(peer)
		t.addRow(style, fmt.Sprint(peer.Rank), fmt.Sprint(peer.Peer), state, formatRate(&peer.Rates, peer.Rates.Messages),
			formatByteRate(&peer.Rates),
			fmt.Sprint(peer.Retransmissions), fmt.Sprint(peer.Drops),
			strings.Replace(words.Latency(peer.RoundTrip()), "–", "-", 1), fmt.Sprint(peer.Failed),
			fmt.Sprint(peer.Sent), fmt.Sprint(peer.Received), string(peer.Kind), string(peer.Profile),
			orDash(peer.Transport), peer.Address)
	}
	lines := append(heading("PEERS, sorted by %v", p.order), t.lines(p.width)...)
	if silent > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s not shown", words.Plural(silent, "silent peer")), faint}})
	}
	if hidden > 0 {
		lines = append(lines, styledLine{{fmt.Sprintf("  %s hidden by the filter", words.Plural(hidden, "peer")), faint}})
	}
	return lines
}

// peerState describes the state of a peer in a few words, and returns the style for them.
func peerState(peer *digest.Peer) (string, style) {
	switch age := digest.AgeOf(peer.OldestWait); {
	case peer.Refuses != "":
		return "refused", red
	case peer.NetworkError != "":
		return "network error", red
	case age == digest.Long:
		return "waiting " + words.Duration(peer.OldestWait), red
	case age == digest.Medium:
		return "waiting " + words.Duration(peer.OldestWait), yellow
	case peer.Unexpected > 0:
		return fmt.Sprintf("%d unexpected", peer.Unexpected), plain
	case peer.Rates.Messages > 0:
		return "active", plain
	}
	return "idle", faint
}

// formatRate formats value, which is one of the rates in r. It returns a dash if the rates are unknown.
func formatRate(r *digest.Rates, value float64) string {
	if !r.Known {
		return "-"
	}
	return words.Quantity(value)
}

func formatByteRate(r *digest.Rates) string {
	if !r.Known {
		return "-"
	}
	return words.Bytes(r.Bytes)
}
