package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// summaryColumns lists the sides that appear in the summary, with the headings of their columns.
var summaryColumns = []struct{ key, heading string }{
	{cloudFPGA.key, "cloudFPGA"}, {"attached", "attached"}, {extendedUDP.key, "UDP"}, {extendedTCP.key, "TCP"},
	{openMPITCP, "Open MPI, TCP"}, {extendedShm.key, "shm"}, {openMPIShm, "Open MPI, shm"}, {mpichShm, "MPICH, shm"},
}

// summaryRows lists the steps in the summary.
var summaryRows = []struct {
	name, workload string
	n              int
	cell           func(*Point, *Measured) string
}{
	{"Ping-pong 4 B, µs", "pingpong", 4, median50},
	{"Ping-pong 4 B, p99, µs", "pingpong", 4, func(p *Point, _ *Measured) string { return formatFigure(p.P99) }},
	{"Ping-pong 4 KiB, µs", "pingpong", 4 << 10, median50},
	{"Ping-pong 64 KiB, µs", "pingpong", 64 << 10, median50},
	{"Ping-pong 1 MiB, µs", "pingpong", 1 << 20, median50},
	{"Rate 4 B, 1000/s", "rate", 4, thousands},
	{"Stream 64 KiB, MB/s", "stream", 64 << 10, bandwidth},
	{"Stream 1 MiB, MB/s", "stream", 1 << 20, bandwidth},
	{"Ring of 8, a hop, µs", "ring", 8, median50},
	{"30 000 posted, µs", "queues", 30000, median50},
	{"Bcast, 4 × 4 B, µs", "bcast-4", 4, median50},
	{"Bcast, 4 × 1 MiB, µs", "bcast-4", 1 << 20, median50},
	{"Allreduce, 8 × 4 B, µs", "allreduce", 4, median50},
	{"Allreduce, 8 × 1 MiB, µs", "allreduce", 1 << 20, median50},
	{"Alltoall, 8 × 4 B, µs", "alltoall", 4, median50},
	{"Alltoall, 8 × 1 MiB, µs", "alltoall", 1 << 20, median50},
	{"Reduce, 8 × 4 B, µs", "reduce", 4, median50},
	{"Gather, 8 × 4 B, µs", "gather", 4, median50},
	{"Waiting rank, % CPU", "idle", 3000, func(p *Point, _ *Measured) string { return fmt.Sprintf("%.2f", p.Waiting) }},
	{"Peak memory, MiB", "pingpong", 4,
		func(_ *Point, s *Measured) string { return formatFigure(float64(s.Memory) / 1024) }},
}

func median50(p *Point, _ *Measured) string { return formatFigure(p.P50) }

// Summary returns the summary for docs/performance.md as a Markdown table with a few figures of each workload, followed
// by a paragraph about the run.
func (r *Report) Summary() string {
	t := &table{title: "Medians of one run", headings: []string{""}}
	for _, c := range summaryColumns {
		t.headings = append(t.headings, c.heading)
	}
	for _, row := range summaryRows {
		cells := []string{row.name}
		for _, c := range summaryColumns {
			cell := noFigure
			if res := r.result(row.workload); res != nil {
				if s := res.side(c.key); s.point(row.n) != nil {
					cell = row.cell(s.point(row.n), s)
				}
			}
			cells = append(cells, cell)
		}
		t.add(cells...)
	}
	p := printer{markdown: true}
	t.write(&p.text, true)
	m := r.Machine
	origin := []string{
		m.processors(), m.System, m.Go, "zrlmpid " + m.Version, "median of " + roundsText(r.Rounds), m.Time,
		"a wake-up of a sleeping thread: " + m.wakeUp(),
	}
	for i := range r.Results {
		for k := range r.Results[i].Sides {
			if s := &r.Results[i].Sides[k]; s.Kind == Peer && !slices.Contains(origin, s.Version) {
				origin = append(origin, s.Version)
			}
		}
	}
	p.paragraph(strings.Join(origin, "; ") + ".")
	return p.text.String()
}

// Marks that enclose the summary in a document.
const (
	summaryBegin = "<!-- bench: summary -->\n"
	summaryEnd   = "<!-- end of bench: summary -->"
)

// Update replaces the summary in a document. It returns an error and leaves the document unchanged unless the document
// contains the marks exactly once.
func (r *Report) Update(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, _, after, err := cutSummary(string(text))
	if err != nil {
		return fmt.Errorf("%s is unchanged: %w", file, err)
	}
	return os.WriteFile(file, []byte(before+summaryBegin+r.Summary()+summaryEnd+after), 0o666)
}

// cutSummary returns the summary in a document, the text before the first mark, and the text after the last mark.
func cutSummary(doc string) (before, text, after string, err error) {
	begin := strings.TrimSpace(summaryBegin)
	before, rest, ok := strings.Cut(doc, summaryBegin)
	if !ok {
		err := fmt.Errorf("no line %s: write it above the place of the table, and %s below", begin, summaryEnd)
		return "", "", "", err
	}
	text, after, ok = strings.Cut(rest, summaryEnd)
	switch {
	case !ok:
		return "", "", "", fmt.Errorf("no line %s below %s", summaryEnd, begin)
	case strings.Contains(text+after, summaryBegin):
		return "", "", "", fmt.Errorf("two lines %s: remove one of them", begin)
	}
	return before, text, after, nil
}
