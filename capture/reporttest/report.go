// Package reporttest creates synthetic reports for tests of code that displays reports. It must not be linked into a
// program.
package reporttest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
)

// RecordedAt is the start time of all synthetic recordings.
var RecordedAt = time.Date(2026, 3, 14, 9, 26, 53, 589_793_000, time.UTC)

// HostileTexts lists texts that break out of markup or code if they are not escaped.
var HostileTexts = []string{
	`</script><script>alert(1)</script>`,
	`</ScRiPt ><img src=x onerror=alert(1)>`,
	`<!--<script>`, `-->`, `]]>`, `</title></style></head>`,
	`" onload="alert(1)`, `' onload='alert(1)`, "`${alert(1)}`",
	`\u003c/script\u003e`, `{{.Script}}`, `&lt;script&gt;`,
	"line\u2028paragraph\u2029end", "zero\x00byte", "\u202egnp.exe", "Größe 大小 🧮", "bad \xff\xfe utf-8",
}

// Traffic describes a synthetic recording in which one rank exchanges messages with all others, or all ranks with each
// other, in bursts separated by pauses. About one message in LossEvery loses a packet, which is retransmitted after a
// timeout.
type Traffic struct {
	Ranks, Messages, LossEvery int
	AllToAll                   bool
}

// Report returns the report of the synthetic recording. Equal values of Traffic yield equal reports.
func (tr Traffic) Report() *capture.Report {
	g := &generator{rng: rand.New(rand.NewPCG(2718, uint64(tr.Messages))), freeAt: make([]float64, tr.Ranks)}
	for i := range tr.Messages {
		src, dst := 0, 1+i%(tr.Ranks-1)
		if tr.AllToAll {
			src = i % tr.Ranks
			dst = (src + 1 + i/tr.Ranks%(tr.Ranks-1)) % tr.Ranks
		} else if i/(tr.Ranks-1)%2 == 1 {
			src, dst = dst, src
		}
		if i%1000 == 999 {
			g.insertPause()
		}
		g.addMessage(src, dst, tr.LossEvery > 0 && g.rng.IntN(tr.LossEvery) == 0)
	}
	return g.buildReport(fmt.Sprintf("synthetic-%d.pcap", tr.Messages))
}

type generator struct {
	rng      *rand.Rand
	freeAt   []float64 // time at which each rank is free, in seconds
	messages []capture.Message
	findings []capture.Finding
}

func (g *generator) insertPause() {
	at := slices.Max(g.freeAt) + 0.2 + g.rng.Float64()
	for i := range g.freeAt {
		g.freeAt[i] = at
	}
}

// jitter returns a random duration that is usually close to the given one, and occasionally much longer.
func (g *generator) jitter(seconds float64) float64 {
	t := seconds * (0.6 + 0.8*g.rng.Float64())
	if g.rng.IntN(200) == 0 {
		t *= 30
	}
	return max(t, 1e-9)
}

func (g *generator) addMessage(src, dst int, lossy bool) {
	start := max(g.freeAt[src], g.freeAt[dst]) + g.jitter(15e-6)
	words := []uint32{1, 16, 346, 347, 1000, 65536}[g.rng.IntN(6)]
	message := capture.Message{Src: src, Dst: dst, Words: words, Call: []string{"SEND_INT", "SEND_FLOAT"}[g.rng.IntN(4)/3],
		Start: start, Complete: true, Verdict: "ok"}
	datagrams := 1 + int(words*4/1416)
	at := start
	add := func(typ string, repeated bool, length float64) {
		s := capture.Step{Packets: 1, Time: timeAt(at), End: timeAt(at + length), Type: typ,
			FromSender: typ == "SEND_REQUEST" || typ == "DATA", Retransmitted: repeated}
		if typ == "DATA" {
			s.Packets, s.Bytes = datagrams, int64(words)*4
		}
		message.Steps = append(message.Steps, s)
		at += length
	}
	add("SEND_REQUEST", false, 0)
	lost := g.rng.IntN(3)
	if lossy && lost == 0 {
		at += 0.1
		add("SEND_REQUEST", true, 0)
		message.Retransmissions, message.Verdict = 1, "retransmitted"
	}
	requestToClear := at + g.jitter(40e-6) - start
	at = start + requestToClear
	add("CLEAR_TO_SEND", false, 0)
	if lossy && lost == 1 {
		at += 0.1
		add("SEND_REQUEST", true, 0)
		at += g.jitter(30e-6)
		add("CLEAR_TO_SEND", true, 0)
		message.Retransmissions, message.Verdict = 2, "CLEAR_TO_SEND lost"
	}
	cleared := start + requestToClear
	at += g.jitter(12e-6)
	add("DATA", false, float64(datagrams-1)*1.3e-6)
	if lossy && lost == 2 {
		at += 0.1
		add("DATA", true, float64(datagrams-1)*1.3e-6)
		message.Retransmissions, message.Verdict = 1, "DATA or its ACK lost"
	}
	data := at
	at += g.jitter(25e-6)
	add("ACK", false, 0)
	clearToData, dataToAck, total := data-cleared, at-data, at-start
	message.Phases = capture.Phases{RequestToClear: &requestToClear, ClearToData: &clearToData, DataToAck: &dataToAck,
		Total: &total}
	g.freeAt[src], g.freeAt[dst] = at, at
	g.messages = append(g.messages, message)
}

func timeAt(seconds float64) time.Time {
	return RecordedAt.Add(time.Duration(seconds * 1e9))
}

// buildReport numbers the messages and packets in order of time, and computes the summaries.
func (g *generator) buildReport(name string) *capture.Report {
	slices.SortStableFunc(g.messages, func(a, b capture.Message) int { return cmp.Compare(a.Start, b.Start) })
	var steps []*capture.Step
	for i := range g.messages {
		g.messages[i].ID = int64(i + 1)
		for k := range g.messages[i].Steps {
			steps = append(steps, &g.messages[i].Steps[k])
		}
	}
	slices.SortStableFunc(steps, func(a, b *capture.Step) int { return a.Time.Compare(b.Time) })
	packets := int64(0)
	for _, s := range steps {
		s.Packet = packets + 1
		packets += int64(s.Packets)
	}
	report := &capture.Report{Source: "/var/tmp/" + name, Start: RecordedAt, Messages: g.messages, Findings: g.findings}
	report.Summary = capture.Summary{Packets: packets, Units: packets, Bytes: packets * 600,
		FindingsByKind: map[capture.FindingKind]int{}}
	pairs := map[[2]int][]*capture.Message{}
	var all []*capture.Message
	for i := range g.messages {
		message := &g.messages[i]
		all = append(all, message)
		pairs[[2]int{message.Src, message.Dst}] = append(pairs[[2]int{message.Src, message.Dst}], message)
		if message.Retransmissions > 0 {
			kind, last := capture.RetransmittedPacket, message.Steps[len(message.Steps)-2]
			text := fmt.Sprintf("message %d from rank %d to rank %d: no answer in time; 1 packet was retransmitted",
				message.ID, message.Src, message.Dst)
			if message.Verdict != "retransmitted" {
				kind, text = capture.LostPacket, fmt.Sprintf("message %d from rank %d to rank %d: %s, or is not in "+
					"the recording", message.ID, message.Src, message.Dst, message.Verdict)
			}
			f := capture.Finding{Kind: kind, Text: text, Packets: []int64{message.Steps[0].Packet, last.Packet},
				Messages: []int64{message.ID}, Time: last.Time.Sub(RecordedAt).Seconds()}
			report.Findings = append(report.Findings, f)
			report.Summary.FindingsByKind[kind]++
		}
		report.Summary.Seconds = max(report.Summary.Seconds,
			message.Steps[len(message.Steps)-1].End.Sub(RecordedAt).Seconds())
	}
	slices.SortStableFunc(report.Findings, func(a, b capture.Finding) int { return cmp.Compare(a.Time, b.Time) })
	report.Summary.All = summarize(-1, -1, all)
	for key, list := range pairs {
		report.Summary.Pairs = append(report.Summary.Pairs, summarize(key[0], key[1], list))
	}
	slices.SortFunc(report.Summary.Pairs, func(a, b capture.PairSummary) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst))
	})
	return report
}

func summarize(src, dst int, list []*capture.Message) capture.PairSummary {
	summary := capture.PairSummary{Src: src, Dst: dst, Messages: int64(len(list))}
	var phases [4][]float64
	for _, message := range list {
		summary.Words += int64(message.Words)
		summary.Retransmissions += int64(message.Retransmissions)
		if message.Complete {
			summary.Complete++
		}
		for i, t := range []*float64{message.Phases.RequestToClear, message.Phases.ClearToData, message.Phases.DataToAck,
			message.Phases.Total} {
			if t != nil {
				phases[i] = append(phases[i], *t)
			}
		}
	}
	for i, q := range []*capture.Quantiles{&summary.RequestToClear, &summary.ClearToData, &summary.DataToAck,
		&summary.Total} {
		if n := len(phases[i]); n > 0 {
			slices.Sort(phases[i])
			*q = capture.Quantiles{Count: uint64(n), P50: phases[i][n/2], P90: phases[i][n*9/10],
				P99: phases[i][n*99/100], Max: phases[i][n-1]}
		}
	}
	return summary
}

// TroubledReport returns a small report that contains every element of the diagram: a loss, a copy, a packet that was
// not recorded, and ranks that wait for each other.
func TroubledReport() *capture.Report {
	g := &generator{rng: rand.New(rand.NewPCG(1, 1)), freeAt: make([]float64, 4)}
	for i := range 12 {
		g.addMessage(i%3, i%3+1, false)
	}
	g.insertPause()
	g.addMessage(0, 2, false)
	copied := &g.messages[len(g.messages)-1]
	twice := copied.Steps[3]
	twice.Retransmitted = true
	twice.Time, twice.End = twice.Time.Add(9*time.Microsecond), twice.Time.Add(9*time.Microsecond)
	copied.Steps, copied.Retransmissions, copied.Verdict = append(copied.Steps, twice), 0, "ok"
	g.insertPause()
	g.addMessage(1, 3, false)
	unseen := &g.messages[len(g.messages)-1]
	unseen.Steps, unseen.Verdict = slices.Delete(unseen.Steps, 1, 2), "CLEAR_TO_SEND lost"
	unseen.Phases.RequestToClear, unseen.Phases.ClearToData = nil, nil
	g.insertPause()
	for range 40 {
		g.addMessage(0, 1, g.rng.IntN(4) == 0)
	}
	g.insertPause()
	for _, pair := range [][2]int{{2, 3}, {3, 2}} {
		g.freeAt[2], g.freeAt[3] = slices.Max(g.freeAt), slices.Max(g.freeAt)
		g.addMessage(pair[0], pair[1], false)
		message := &g.messages[len(g.messages)-1]
		again := message.Steps[0]
		message.Steps = message.Steps[:1]
		for _, after := range []time.Duration{100, 1200, 3300} {
			again.Time, again.End, again.Retransmitted = message.Steps[0].Time.Add(after*time.Millisecond),
				message.Steps[0].Time.Add(after*time.Millisecond), true
			message.Steps = append(message.Steps, again)
		}
		message.Phases, message.Complete, message.Verdict, message.Words, message.Retransmissions = capture.Phases{}, false,
			"deadlock", 0, 3
		g.freeAt[pair[0]] = message.Start
	}
	report := g.buildReport("trouble in rank 2.pcap")
	n := len(report.Messages)
	msg, b := &report.Messages[n-2], &report.Messages[n-1]
	report.Findings = slices.DeleteFunc(report.Findings, func(f capture.Finding) bool { return f.Messages[0] >= msg.ID })
	for i := range report.Messages {
		if message := &report.Messages[i]; len(message.Steps) == 5 && message.Steps[4].Retransmitted &&
			message.Retransmissions == 0 {
			report.Findings = append(report.Findings,
				capture.Finding{Kind: capture.DuplicatePacket, Text: "ACK 2→0 arrived twice within 50ms",
					Packets: []int64{message.Steps[4].Packet}, Messages: []int64{message.ID},
					Time: message.Steps[4].Time.Sub(RecordedAt).Seconds()})
		} else if len(message.Steps) == 3 {
			report.Findings = append(report.Findings,
				capture.Finding{Kind: capture.LostPacket,
					Text: fmt.Sprintf("message %d from rank 1 to rank 3: CLEAR_TO_SEND was lost, or is not in the "+
						"recording", message.ID), Packets: []int64{message.Steps[1].Packet}, Messages: []int64{message.ID},
					Time: message.Steps[1].Time.Sub(RecordedAt).Seconds()})
		}
	}
	report.Summary.Seconds += 1.5
	report.Findings = append(report.Findings,
		capture.Finding{Kind: capture.MixedPadding, Text: "rank 3 pads its payload to 8 bytes, as FPGAs do",
			Packets: []int64{msg.Steps[0].Packet}, Time: msg.Start},
		capture.Finding{
			Kind: capture.Deadlock, Text: "rank 2 has waited 4.8s for CLEAR_TO_SEND from rank 3; rank 3 has waited " +
				"4.8s for CLEAR_TO_SEND from rank 2",
			Packets: []int64{msg.Steps[0].Packet, b.Steps[0].Packet}, Messages: []int64{msg.ID, b.ID},
			Time: report.Summary.Seconds,
		})
	slices.SortStableFunc(report.Findings, func(x, y capture.Finding) int { return cmp.Compare(x.Time, y.Time) })
	report.Summary.FindingsByKind = map[capture.FindingKind]int{}
	for i := range report.Findings {
		report.Summary.FindingsByKind[report.Findings[i].Kind]++
	}
	return report
}
