package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format specifies how a report is printed.
type Format struct {
	// Markdown selects the output for documents instead of the output for a terminal.
	Markdown bool
	// Images is the folder that contains the plots, relative to the document. If it is empty, plots are omitted.
	Images string
}

// Print writes the report's tables, and a description of the run.
func (r *Report) Print(out io.Writer, format Format) error {
	p := printer{markdown: format.Markdown}
	p.run(r, r.Results)
	for i := range r.Results {
		res := &r.Results[i]
		if len(res.Sides) == 0 {
			continue
		}
		w, _ := workloadNamed(res.Workload) // Load has checked the name
		if format.Markdown {
			p.line("## %s\n", w.title)
			if format.Images != "" {
				p.images(r, res, format.Images)
			}
		} else {
			p.line("== %s (%s) ==\n", w.title, w.name)
		}
		p.tables(r, res)
		for _, n := range r.Notes {
			if n.Workload == res.Workload {
				p.paragraph(n.Text)
			}
		}
	}
	p.archivedParts(r)
	_, err := io.WriteString(out, p.text.String())
	return err
}

type printer struct {
	text     strings.Builder
	markdown bool
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// item prints a line of a list.
func (p *printer) item(format string, args ...any) {
	if p.markdown {
		format = "- " + format
	}
	p.line(format, args...)
}

// run returns a description of the run in which the given workloads were measured.
func (p *printer) run(report *Report, results []Result) {
	machine := report.Machine
	if report.Command != "" {
		p.item("%s", p.code(report.Command))
	}
	median := ""
	if report.Rounds > 0 {
		median = "median of " + roundsText(report.Rounds) + ", all sides in turn; "
	}
	p.item("%s%s", median, machine.Time)
	p.item("%s, %s, %s, zrlmpid %s", machine.processors(), cmp.Or(machine.System, "unknown system"),
		cmp.Or(machine.Go, "unknown Go"),
		cmp.Or(machine.Version, "of unknown version"))
	p.item("a wake-up of a thread that slept 1 ms: %s", machine.wakeUp())
	for _, text := range report.lineNotes(results) {
		p.item("%s", text)
	}
	if machine.LoadBefore != "" {
		p.item("load average %s before, %s after", machine.LoadBefore, machine.LoadAfter)
	}
	seen := map[string]bool{}
	verified := 0
	for _, res := range results {
		for _, s := range res.Sides {
			verified += s.Verified
			if s.Kind == Peer && !seen[s.Version] {
				seen[s.Version] = true
				p.item("%s", s.Version)
			}
		}
	}
	if verified > 0 {
		p.item("%s messages, all verified", formatCount(verified))
	}
	concerned := func(text string) bool {
		return slices.ContainsFunc(results, func(res Result) bool { return report.concerns(text, res.Workload) })
	}
	for _, text := range report.Missing {
		if concerned(text) {
			p.item("*** %s ***", text)
		}
	}
	for _, text := range report.Failed {
		if concerned(text) {
			p.item("*** FAILED: %s ***", text)
		}
	}
	p.line("")
}

// roundsText formats a number of rounds.
func roundsText(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// concerns reports whether a remark about missing or failed measurements applies to a workload. It does unless it names
// another workload.
func (r *Report) concerns(text, workload string) bool {
	for _, res := range r.Results {
		if len(res.Sides) > 0 && strings.HasPrefix(text, res.Workload+", ") {
			return res.Workload == workload
		}
	}
	return true
}

func (p *printer) tables(r *Report, res *Result) {
	for _, t := range r.tables(res) {
		t.write(&p.text, p.markdown)
	}
}

// images inserts the plots of a workload.
func (p *printer) images(r *Report, res *Result, folder string) {
	for _, d := range r.plots(res) {
		p.line("![%s](%s/%s.svg)\n", d.chart.Title, folder, d.name)
	}
}
