package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zrlmpi/zrlmpid/lab/results"
)

// TargetResult reports whether a figure measured in a run meets one of the project's targets.
type TargetResult struct {
	Workload string `json:"workload"`
	// Name describes the figure that is compared.
	Name   string `json:"name"`
	Target string `json:"target"`
	// Value is the measured figure, or nil if it could not be determined.
	Value *float64 `json:"value,omitempty"`
	// Where names the step or side with the worst figure, if the target covers several steps or sides.
	Where string `json:"where,omitempty"`
	Met   bool   `json:"met"`
}

// String returns a line such as "missed: NAME: 1.55 (4 B); target: at most 1.25".
func (v *TargetResult) String() string {
	if v.Value == nil {
		return fmt.Sprintf("not measured: %s; target: %s", v.Name, v.Target)
	}
	where := ""
	if v.Where != "" {
		where = " (" + v.Where + ")"
	}
	return fmt.Sprintf("%s: %s: %s%s; target: %s", v.metText(), v.Name, formatFigure(*v.Value), where, v.Target)
}

func (v *TargetResult) metText() string {
	if v.Met {
		return "met"
	}
	return "missed"
}

// Table is a table of an archived run whose figures were measured by a program other than zrlbench. The column headings
// contain the units.
type Table struct {
	Title string `json:"title"`
	// Command is the command line that measures the table's figures again.
	Command string     `json:"command,omitempty"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Note is a remark on an archived run or, if Workload is set, on one of its workloads.
type Note struct {
	Workload string `json:"workload,omitempty"`
	Text     string `json:"text"`
}

// isArchived reports whether the report contains results but no rounds.
func (r *Report) isArchived() bool {
	found := len(r.Targets)+len(r.Tables) > 0
	for i := range r.Results {
		for k := range r.Results[i].Sides {
			s := &r.Results[i].Sides[k]
			if len(s.Rounds) > 0 {
				return false
			}
			found = found || len(s.Median) > 0
		}
	}
	return found
}

// Archive returns the report in the form stored in lab/results: without the figures of single rounds, and with the
// verdict on each target.
func (r *Report) Archive() *Report {
	if r.isArchived() {
		return r
	}
	report := *r
	report.Targets = slices.DeleteFunc(r.verdicts(), func(v TargetResult) bool { return v.Value == nil })
	report.Results = nil
	for i := range r.Results {
		res := r.Results[i]
		again, notes := r.slowLines(r.Results[i : i+1])
		if again > 0 {
			text := fmt.Sprintf("measurements done again since a cache line was slow: %d", again)
			notes = append([]string{text}, notes...)
		}
		for _, text := range notes {
			report.Notes = append(report.Notes, Note{Workload: res.Workload, Text: text})
		}
		res.Sides = slices.Clone(res.Sides)
		for k := range res.Sides {
			s := &res.Sides[k]
			s.Rounds, s.Attempts = nil, nil
			if s.Disturbed != nil {
				s.Disturbed = &Figures{Cut: s.Disturbed.Cut, Median: s.Disturbed.Median}
			}
		}
		report.Results = append(report.Results, res)
	}
	report.computeDerived()
	return &report
}

// Name returns the name of an archived run, as in "2026-11-26-2x-amd-epyc-family-25-model-17".
func (r *Report) Name() string {
	date, _, _ := strings.Cut(r.Machine.Time, "T")
	return cmp.Or(date, "undated") + "-" + Slug(r.Machine.processors())
}

// Slug converts text to the form used in the names of archived runs: lower-case letters and digits, with hyphens in
// place of everything else.
func Slug(text string) string {
	text = strings.ReplaceAll(text, " × ", "x ")
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}), "-")
}

// Select returns a report that contains only the given workloads.
func (r *Report) Select(workloads ...string) (*Report, error) {
	for _, name := range workloads {
		if _, err := workloadNamed(name); err != nil {
			return nil, usagef("%v", err)
		}
		hasTarget := slices.ContainsFunc(r.Targets, func(v TargetResult) bool { return v.Workload == name })
		if r.result(name) == nil && !hasTarget {
			return nil, usagef("%s has no figures of %s", r.Name(), name)
		}
	}
	other := func(name string) bool { return !slices.Contains(workloads, name) }
	report := *r
	report.Tables = nil
	report.Results = slices.DeleteFunc(slices.Clone(r.Results), func(x Result) bool { return other(x.Workload) })
	report.Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(v TargetResult) bool { return other(v.Workload) })
	report.Notes = slices.DeleteFunc(slices.Clone(r.Notes), func(n Note) bool {
		return n.Workload != "" && other(n.Workload)
	})
	report.Growth = slices.DeleteFunc(slices.Clone(r.Growth), func(g Growth) bool { return other(g.Workload) })
	report.Ratios = slices.DeleteFunc(slices.Clone(r.Ratios), func(v Ratio) bool { return other(v.Workload) })
	return &report, nil
}

// WithTargets returns the report with a verdict on each target.
func (r *Report) WithTargets() *Report {
	if r.isArchived() {
		return r
	}
	a := *r
	a.Targets = r.verdicts()
	return &a
}

// PrintTargets writes one line for each target of the workloads that were measured.
func (r *Report) PrintTargets(p func(line string) error) error {
	for _, v := range r.WithTargets().Targets {
		if err := p(v.String()); err != nil {
			return err
		}
	}
	return nil
}

// targetTable returns the table of targets, or nil for a report without targets.
func (r *Report) targetTable() *table {
	if len(r.Targets) == 0 {
		return nil
	}
	t := &table{title: "Targets and the worst figure of each", headings: []string{"what", "target", "figure", "of", ""}}
	for i := range r.Targets {
		v := &r.Targets[i]
		value, outcome := noFigure, noFigure
		if v.Value != nil {
			value, outcome = formatFigure(*v.Value), v.metText()
		}
		t.add(v.Name, v.Target, value, v.Where, outcome)
	}
	return t
}

// archivedParts prints the sections of a report that occur only in archived runs.
func (p *printer) archivedParts(report *Report) {
	for i := range report.Tables {
		x := &report.Tables[i]
		t := &table{title: x.Title, headings: x.Columns, rows: x.Rows}
		t.write(&p.text, p.markdown)
		if x.Command != "" {
			p.line("Measured by: %s\n", p.code(x.Command))
		}
	}
	if t := report.targetTable(); t != nil {
		t.write(&p.text, p.markdown)
	}
	p.reasons(report)
	for _, n := range report.Notes {
		if n.Workload == "" {
			p.paragraph(n.Text)
		}
	}
}

// reasons prints why targets were missed.
func (p *printer) reasons(r *Report) {
	for _, why := range results.Reasons() {
		var names []string
		for i := range r.Targets {
			if v := &r.Targets[i]; v.Value != nil && !v.Met && slices.Contains(why.Targets, v.Name) {
				names = append(names, v.Name)
			}
		}
		if len(names) > 0 {
			p.paragraph("Missed: " + strings.Join(names, "; ") + ". " + why.Why)
		}
	}
}

// code formats a command as inline code in Markdown.
func (p *printer) code(text string) string {
	if p.markdown {
		return "`" + text + "`"
	}
	return text
}

// paragraph prints text of several sentences, followed by an empty line.
func (p *printer) paragraph(text string) {
	const width = 100
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			p.text.WriteByte('\n')
			column = 0
		default:
			p.text.WriteByte(' ')
			column++
		}
		p.text.WriteString(word)
		column += n
	}
	p.text.WriteString("\n\n")
}
