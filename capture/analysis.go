package capture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// AnalysisOptions configure an Analysis.
type AnalysisOptions struct {
	Profile protocol.Profile
	// KeepMessages is the maximum number of messages in Report.Messages. Further messages are only counted.
	KeepMessages int
	// KeepSteps is the maximum number of steps kept for each message. Further steps are discarded.
	KeepSteps int
	// KeepTrace is the maximum number of elements kept in each of Report.Extended, Report.Depths and Report.Calls.
	KeepTrace int
	// OnMessage and OnFinding, if not nil, are called with each message and each finding, including those that the
	// report does not list because of a limit.
	OnMessage func(*Message)
	OnFinding func(*Finding)
}

// maxFindings limits the findings kept of each kind. Further findings are only counted.
const maxFindings = 1000

// maxPairs is the maximum number of rank pairs that get their own summary. Messages of further pairs count only in the
// total.
const maxPairs = 1 << 13

// Analysis collects the messages and findings of a recording.
type Analysis struct {
	opts    AnalysisOptions
	tracker *Tracker
	source  string

	messages  []Message
	extended  []ExtendedMessage
	depths    []pcapng.QueueDepths
	calls     []pcapng.Call
	findings  []Finding
	perKind   map[FindingKind]int
	all       pairSummary
	pairs     map[[2]int]*pairSummary
	truncated error // error at which reading a truncated or corrupt recording stopped
	stats     Stats
}

// pairSummary accumulates the PairSummary of two ranks. A histogram of each phase supplies the quantiles.
type pairSummary struct {
	PairSummary
	phases [numPhases]histogram
}

const numPhases = 4

// NewAnalysis returns an empty analysis of the recording with the given name.
func NewAnalysis(name string, opts AnalysisOptions) *Analysis {
	analysis := &Analysis{
		opts: opts, source: name, messages: []Message{}, findings: []Finding{}, perKind: map[FindingKind]int{},
		pairs: map[[2]int]*pairSummary{},
		all:   pairSummary{PairSummary: PairSummary{Src: -1, Dst: -1}},
	}
	track := TrackerOptions{Profile: opts.Profile, KeepSteps: opts.KeepSteps, OnMessage: analysis.addMessage,
		OnFinding: analysis.addFinding}
	if opts.KeepTrace > 0 {
		track.OnExtended = func(m *ExtendedMessage) {
			analysis.extended = appendLimited(analysis.extended, m,
				opts.KeepTrace)
		}
	}
	analysis.tracker = NewTracker(track)
	return analysis
}

// appendLimited appends element to list unless list already holds as many elements as the limit room.
func appendLimited[T any](list []T, element *T, room int) []T {
	if len(list) == room {
		return list
	}
	return append(list, *element)
}

// AddNote adds the queue depths or the MPI call of a note to the analysis. Pass it as Options.OnNote to the source that
// Analyze reads.
func (a *Analysis) AddNote(n pcapng.RankNote) {
	switch n := n.(type) {
	case *pcapng.QueueDepths:
		a.depths = appendLimited(a.depths, n, a.opts.KeepTrace)
	case *pcapng.Call:
		a.calls = appendLimited(a.calls, n, a.opts.KeepTrace)
	}
}

// Analyze analyzes all packets of src. If the recording is truncated, or corrupt after its first packets, Analyze
// returns nil after the readable part, and Summary.Truncated describes the defect.
func (a *Analysis) Analyze(src Source) error {
	err := a.tracker.ProcessAll(src)
	a.stats = src.Stats()
	if j := a.stats.Joined; j != nil {
		for i := range j.OneWay {
			a.addFinding(&Finding{Kind: LostPacket, Packets: []int64{}, Text: j.OneWay[i].text()})
		}
	}
	_, cut := errors.AsType[*TruncatedError](err)
	corrupt, _ := errors.AsType[*FormatError](err)
	if cut || corrupt != nil && corrupt.Packet > 0 {
		a.truncated = err
		return nil
	}
	return err
}

// OpenWaits returns the waits that are still in progress and have lasted at least the given time.
func (a *Analysis) OpenWaits(atLeast time.Duration) []OpenWait { return a.tracker.OpenWaits(atLeast) }

// addMessage adds a message to the totals and, up to the limits, to the lists. From message exactMessages on, quantiles
// are approximate, so that memory is bounded.
func (a *Analysis) addMessage(msg *Message) {
	if a.all.Messages == exactMessages {
		a.all.dropSamples()
		for _, p := range a.pairs {
			p.dropSamples()
		}
	}
	if a.opts.OnMessage != nil {
		a.opts.OnMessage(msg)
	}
	a.all.add(msg)
	key := [2]int{msg.Src, msg.Dst}
	summary := a.pairs[key]
	if summary == nil && len(a.pairs) < maxPairs {
		summary = &pairSummary{PairSummary: PairSummary{Src: msg.Src, Dst: msg.Dst}}
		a.pairs[key] = summary
		if a.all.Messages > exactMessages {
			summary.dropSamples()
		}
	}
	if summary != nil {
		summary.add(msg)
	}
	if len(a.messages) < a.opts.KeepMessages {
		a.messages = append(a.messages, *msg)
	}
}

func (p *pairSummary) add(msg *Message) {
	p.Messages++
	p.Words += int64(msg.Words)
	p.Retransmissions += int64(msg.Retransmissions)
	if msg.Complete {
		p.Complete++
	}
	for i, s := range [numPhases]*float64{msg.Phases.RequestToClear, msg.Phases.ClearToData, msg.Phases.DataToAck,
		msg.Phases.Total} {
		if s != nil {
			p.phases[i].add(time.Duration(*s * float64(time.Second)))
		}
	}
}

// dropSamples discards the exact durations collected for all phases, so that their quantiles are approximate from then
// on.
func (p *pairSummary) dropSamples() {
	for i := range p.phases {
		p.phases[i].dropSamples()
	}
}

func (a *Analysis) addFinding(finding *Finding) {
	if a.opts.OnFinding != nil {
		a.opts.OnFinding(finding)
	}
	a.perKind[finding.Kind]++
	if a.perKind[finding.Kind] <= maxFindings {
		a.findings = append(a.findings, *finding)
	}
}

// Report is the result of an analysis. zrlctl prints its JSON form.
type Report struct {
	Source string `json:"source"`
	// Comment is the comment stored in the recording.
	Comment string    `json:"comment,omitempty"`
	Start   time.Time `json:"start"`
	// Joined describes how several recordings were joined. It is nil for a single recording.
	Joined   *JoinInfo `json:"joined,omitempty"`
	Summary  Summary   `json:"summary"`
	Messages []Message `json:"messages"`
	Findings []Finding `json:"findings"`
	// Extended, Depths and Calls list at most AnalysisOptions.KeepTrace elements each, in the order of the recording.
	Extended []ExtendedMessage    `json:"-"`
	Depths   []pcapng.QueueDepths `json:"-"`
	Calls    []pcapng.Call        `json:"-"`
}

// Summary contains the totals for a recording.
type Summary struct {
	// Packets counts all recorded packets. Units counts the UDP datagrams and the pieces of TCP streams that may carry
	// ZRLMPI. Skipped counts the ignored packets by reason.
	Packets int64            `json:"packets"`
	Units   int64            `json:"units"`
	Bytes   int64            `json:"bytes"`
	Skipped map[string]int64 `json:"skipped,omitempty"`
	// NotFollowed counts the units ignored because the tracker already followed its maximum number of conversations.
	NotFollowed int64 `json:"not_followed,omitempty"`
	// Seconds is the time from the first unit to the last one.
	Seconds float64 `json:"span_seconds"`
	// Truncated is the error at which reading a truncated or corrupt recording stopped. It is empty if the whole
	// recording was read.
	Truncated string `json:"truncated,omitempty"`
	// FindingsByKind counts all findings, including unlisted ones.
	FindingsByKind map[FindingKind]int `json:"findings_by_kind,omitempty"`
	// MessagesNotListed and FindingsNotListed count messages and findings left out of the report's lists.
	MessagesNotListed int64 `json:"messages_not_listed,omitempty"`
	FindingsNotListed int64 `json:"findings_not_listed,omitempty"`
	// All summarizes all messages. Pairs contains one summary per pair of ranks, for a limited number of pairs.
	All   PairSummary   `json:"all"`
	Pairs []PairSummary `json:"pairs"`
	// Extended summarizes the pairs that used the extended profile. Their messages are not counted in the fields above.
	Extended []ExtendedPair `json:"extended,omitempty"`
}

// PairSummary summarizes the messages from one rank to another. Src and Dst are -1 in the summary of all ranks.
type PairSummary struct {
	Src             int   `json:"src"`
	Dst             int   `json:"dst"`
	Messages        int64 `json:"messages"`
	Complete        int64 `json:"complete"`
	Words           int64 `json:"words"`
	Retransmissions int64 `json:"retransmissions"`
	// Durations of the phases, in seconds.
	RequestToClear Quantiles `json:"request_to_clear"`
	ClearToData    Quantiles `json:"clear_to_data"`
	DataToAck      Quantiles `json:"data_to_ack"`
	Total          Quantiles `json:"total"`
}

// Quantiles holds quantiles of the duration of a phase, in seconds. They are exact (nearest rank) or, if Approximate is
// true, within 3.2 % of the exact values.
type Quantiles struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_seconds"`
	P90   float64 `json:"p90_seconds"`
	P99   float64 `json:"p99_seconds"`
	Max   float64 `json:"max_seconds"`
	// Approximate is true if the recording contains more than a million messages.
	Approximate bool `json:"approximate,omitempty"`
}

// MarshalJSON encodes the quantiles as null if Count is 0.
func (q Quantiles) MarshalJSON() ([]byte, error) {
	type measured Quantiles
	if q.Count > 0 {
		return json.Marshal(measured(q))
	}
	return []byte(`{"count":0,"p50_seconds":null,"p90_seconds":null,"p99_seconds":null,"max_seconds":null}`), nil
}

// Report returns the results so far. Messages are sorted by ID, findings by time.
func (a *Analysis) Report() *Report {
	slices.SortFunc(a.messages, func(x, y Message) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortStableFunc(a.findings, func(x, y Finding) int { return cmp.Compare(x.Time, y.Time) })
	report := &Report{
		Source: a.source, Comment: a.stats.Comment, Joined: a.stats.Joined, Start: a.tracker.Start(),
		Messages: a.messages, Findings: a.findings,
		Extended: a.extended, Depths: a.depths, Calls: a.calls,
		Summary: Summary{
			Packets: a.stats.Packets, Units: a.stats.Units, Bytes: a.stats.Bytes,
			Skipped: a.tracker.Skipped(a.stats.Skipped), NotFollowed: a.tracker.notFollowed,
			Seconds: a.tracker.End().Sub(a.tracker.Start()).Seconds(), FindingsByKind: a.perKind,
			MessagesNotListed: a.all.Messages - int64(len(a.messages)),
			All:               a.all.summary(),
			Pairs:             []PairSummary{},
			Extended:          a.tracker.Extended(),
		},
	}
	for _, n := range a.perKind {
		report.Summary.FindingsNotListed += int64(max(n-maxFindings, 0))
	}
	if a.truncated != nil {
		report.Summary.Truncated = oneLine(a.truncated)
	}
	for _, p := range a.pairs {
		report.Summary.Pairs = append(report.Summary.Pairs, p.summary())
	}
	slices.SortFunc(report.Summary.Pairs, func(x, y PairSummary) int {
		return cmp.Or(cmp.Compare(x.Src, y.Src), cmp.Compare(x.Dst, y.Dst))
	})
	return report
}

// WriteJSON writes the report as one JSON object. It encodes one message at a time, so that the encoded form of a long
// list is never in memory as a whole.
func (r *Report) WriteJSON(w io.Writer) error {
	head := *r
	head.Messages = nil
	b, err := json.Marshal(&head)
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(b, []byte(`"messages":null`))
	if _, err := fmt.Fprintf(w, `%s"messages":[`, before); err != nil {
		return err
	}
	for i := range r.Messages {
		m, err := json.Marshal(&r.Messages[i])
		if err != nil {
			return err
		}
		if i > 0 {
			m = append([]byte(",\n"), m...)
		}
		if _, err := w.Write(m); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "]%s\n", after)
	return err
}

// IsClean reports whether the recording is complete and caused no findings.
func (r *Report) IsClean() bool { return len(r.Findings) == 0 && r.Summary.Truncated == "" }

func (p *pairSummary) summary() PairSummary {
	for i, q := range [numPhases]*Quantiles{&p.RequestToClear, &p.ClearToData, &p.DataToAck, &p.Total} {
		*q = p.phases[i].quantiles()
	}
	return p.PairSummary
}
