package htmlreport

import (
	"math"
	"slices"

	"github.com/zrlmpi/zrlmpid/capture"
)

// document is the data for the page's script. It stores one column per field instead of one object per message, so that
// field names are not repeated. Times are differences in nanoseconds. Unknown values are -1.
type document struct {
	Span     int64          `json:"span"`
	Messages messageColumns `json:"messages"`
	Steps    stepColumns    `json:"steps"`
	Findings findingColumns `json:"findings"`
	Pairs    []pairRow      `json:"pairs"`
	Waits    []openWait     `json:"waits"`
	// Listed is false if the report does not list all messages of the recording.
	Listed bool `json:"listed"`
	// Approximate is true if quantiles are approximate.
	Approximate bool `json:"approximate,omitempty"`
}

// messageColumns contains columns with one entry per message.
type messageColumns struct {
	ID    []int64  `json:"id"` // difference from the previous one
	Src   []int    `json:"src"`
	Dst   []int    `json:"dst"`
	Words []uint32 `json:"words"`
	Tag   []int    `json:"tag"`
	// Call and Verdict are indices into Calls and Verdicts.
	Call     []int    `json:"call"`
	Calls    []string `json:"calls"`
	Verdict  []int    `json:"verdict"`
	Verdicts []string `json:"verdicts"`
	Start    []int64  `json:"start"` // difference from the previous one
	// Phases holds durations of each message: from request to clear, from clear to data, from data to ACK, and the
	// total.
	Phases          [4][]int64 `json:"phases"`
	Retransmissions []int      `json:"retransmissions"`
	Complete        digits     `json:"complete"`
	// Steps contains the number of steps of each message.
	Steps []int `json:"steps"`
}

// stepColumns contains columns with one entry per step, ordered by message.
type stepColumns struct {
	// Time is the difference from the previous step of the message, or from the start of the message for its first
	// step.
	Time []int64 `json:"time"`
	// Length is the time between the first and the last packet of the step.
	Length  []int64 `json:"length"`
	Packet  []int64 `json:"packet"` // difference from the previous one
	Packets []int   `json:"packets"`
	Bytes   []int64 `json:"bytes"`
	// Type is an index into Types. Flags is a set of flag constants.
	Type  digits   `json:"type"`
	Types []string `json:"types"`
	Flags digits   `json:"flags"`
}

// findingColumns contains columns with one entry per finding.
type findingColumns struct {
	// First is the index of the finding that is selected when the page opens, or -1 if there are no findings.
	First    int       `json:"first"`
	Kind     []int     `json:"kind"`
	Kinds    []kindRow `json:"kinds"`
	Time     []int64   `json:"time"`
	Text     []string  `json:"text"`
	Packets  [][]int64 `json:"packets"`
	Messages [][]int64 `json:"messages"` // IDs
}

// pairRow is the summary of the messages between a pair of ranks, or between all ranks.
type pairRow struct {
	Src             int   `json:"src"`
	Dst             int   `json:"dst"`
	Messages        int64 `json:"messages"`
	Complete        int64 `json:"complete"`
	Words           int64 `json:"words"`
	Retransmissions int64 `json:"retransmissions"`
	// Phases holds the number of durations, p50, p90, p99 and the maximum for each phase.
	Phases [4][5]int64 `json:"phases"`
}

// maxTime limits times, in nanoseconds, so that the difference between two times does not overflow.
const maxTime = 1 << 61

// maxTypes is the maximum number of packet types. A type must fit in one digit.
const maxTypes = 32

// noTime represents an unknown time.
const noTime = -1

func newDocument(report *capture.Report) *document {
	d := &document{
		Span:   max(nanoseconds(report.Summary.Seconds), 0),
		Pairs:  []pairRow{newPairRow(&report.Summary.All)},
		Listed: report.Summary.MessagesNotListed == 0, Approximate: report.Summary.All.Total.Approximate,
	}
	for i := range report.Summary.Pairs {
		d.Pairs = append(d.Pairs, newPairRow(&report.Summary.Pairs[i]))
	}
	d.Findings = newFindings(report)
	d.Waits = openWaits(report)
	d.addMessages(report)
	return d
}

func (d *document) addMessages(report *capture.Report) {
	columns, s := &d.Messages, &d.Steps
	s.Types = slices.Clone(wireOrder)
	copies := copiedPackets(report)
	var lastID, lastStart, lastPacket int64
	for i := range report.Messages {
		msg := &report.Messages[i]
		start := nanoseconds(msg.Start)
		columns.ID, lastID = append(columns.ID, msg.ID-lastID), msg.ID
		columns.Start, lastStart = append(columns.Start, start-lastStart), start
		columns.Src, columns.Dst = append(columns.Src, msg.Src), append(columns.Dst, msg.Dst)
		columns.Words, columns.Tag = append(columns.Words, msg.Words), append(columns.Tag, msg.Tag)
		columns.Call, columns.Verdict = append(columns.Call, indexOrAppend(&columns.Calls, msg.Call, 0)),
			append(columns.Verdict, indexOrAppend(&columns.Verdicts, msg.Verdict, 0))
		complete := byte(0)
		if msg.Complete {
			complete = 1
		}
		columns.Retransmissions, columns.Complete = append(columns.Retransmissions,
			msg.Retransmissions), append(columns.Complete, complete)
		for k, p := range phasesOf(&msg.Phases) {
			columns.Phases[k] = append(columns.Phases[k], optional(p))
		}
		steps := drawnSteps(msg, copies)
		columns.Steps = append(columns.Steps, len(steps))
		at := start
		for _, st := range steps {
			t := min(max(int64(st.Time.Sub(report.Start)), -maxTime), maxTime)
			s.Time, at = append(s.Time, t-at), t
			s.Length = append(s.Length, max(int64(st.End.Sub(st.Time)), 0))
			s.Packet, lastPacket = append(s.Packet, st.Packet-lastPacket), st.Packet
			s.Packets, s.Bytes = append(s.Packets, st.Packets), append(s.Bytes, st.Bytes)
			s.Type, s.Flags = append(s.Type, byte(indexOrAppend(&s.Types, st.Type, maxTypes))), append(s.Flags, st.flags)
		}
	}
}

func phasesOf(p *capture.Phases) [4]*float64 {
	return [4]*float64{p.RequestToClear, p.ClearToData, p.DataToAck, p.Total}
}

func newPairRow(p *capture.PairSummary) pairRow {
	row := pairRow{
		Src: p.Src, Dst: p.Dst, Messages: p.Messages, Complete: p.Complete, Words: p.Words,
		Retransmissions: p.Retransmissions,
	}
	for i, q := range [4]capture.Quantiles{p.RequestToClear, p.ClearToData, p.DataToAck, p.Total} {
		row.Phases[i] = [5]int64{int64(q.Count), nanoseconds(q.P50), nanoseconds(q.P90), nanoseconds(q.P99),
			nanoseconds(q.Max)}
	}
	return row
}

// nanoseconds converts seconds to nanoseconds. NaN becomes 0, and the result is limited to ±maxTime: a corrupt time
// stamp must not break the report.
func nanoseconds(s float64) int64 {
	n := math.Round(s * 1e9)
	switch {
	case math.IsNaN(n):
		return 0
	case n > maxTime:
		return maxTime
	case n < -maxTime:
		return -maxTime
	}
	return int64(n)
}

func optional(s *float64) int64 {
	if s == nil || math.IsNaN(*s) || *s < 0 {
		return noTime
	}
	return nanoseconds(*s)
}
