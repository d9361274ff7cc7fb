package bench

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Format is how a report is printed.
type Format struct {
	// Markdown is that of docs/performance.md, with the comments that mark its
	// sections; else it is for a terminal.
	Markdown bool
	// Images is the folder of the plots as Markdown names it; "" shows none.
	Images string
}

// Print writes the tables, the verdicts, and what there is to know about them.
func (r *Report) Print(out io.Writer, f Format) error {
	var b bytes.Buffer
	for _, s := range r.sections(f) {
		if f.Markdown {
			fmt.Fprintf(&b, "%s\n%s%s\n\n", beginMark(s.name), s.text, endMark(s.name))
		} else {
			b.WriteString(s.text)
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}

// section is a part of what is printed: of the run, a workload, or all of them.
type section struct{ name, text string }

// sections returns all parts in order.
func (r *Report) sections(f Format) []section {
	p := printer{markdown: f.Markdown}
	p.run(r)
	all := []section{p.take("run")}
	for i := range r.Results {
		res := &r.Results[i]
		if len(res.Sides) == 0 {
			continue
		}
		switch {
		case f.Markdown && f.Images != "":
			p.images(r, res, f.Images)
		case !f.Markdown:
			w, _ := workloadNamed(res.Workload) // which was checked
			p.line("== %s (%s) ==", w.title, w.name)
			p.line("")
		}
		for _, t := range r.tables(res) {
			t.write(&p.text, f.Markdown)
		}
		all = append(all, p.take(res.Workload))
	}
	r.memoryTable().write(&p.text, f.Markdown)
	all = append(all, p.take("memory"))
	p.verdicts(r)
	return append(all, p.take("verdicts"))
}

type printer struct {
	text     strings.Builder
	markdown bool
}

// take returns what was printed since it was last called.
func (p *printer) take(name string) section {
	s := section{name, p.text.String()}
	p.text.Reset()
	return s
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// item is a line of a list.
func (p *printer) item(format string, args ...any) {
	if p.markdown {
		format = "- " + format
	}
	p.line(format, args...)
}

// run says where the figures come from.
func (p *printer) run(r *Report) {
	m := r.Machine
	p.item("median of %d round(s), all sides in turn; %s", r.Rounds, m.Time)
	p.item("%d × %s, %s, %s, zrlmpid %s", m.Cores, m.CPU, m.System, m.Go, m.Version)
	p.item("load average %s before, %s after", m.LoadBefore, m.LoadAfter)
	seen := map[string]bool{}
	verified := 0
	for _, res := range r.Results {
		for _, s := range res.Sides {
			verified += s.Verified
			if s.Kind == Peer && !seen[s.Version] {
				seen[s.Version] = true
				p.item("%s", s.Version)
			}
		}
	}
	p.item("%s messages, all verified", count(verified))
	for _, text := range r.Missing {
		p.item("*** %s ***", text)
	}
	for _, text := range r.Failed {
		p.item("*** FAILED: %s ***", text)
	}
	p.line("")
}

// images shows the plots of a workload.
func (p *printer) images(r *Report, res *Result, folder string) {
	for _, d := range r.plots(res) {
		p.line("![%s](%s/%s.svg)\n", d.plot.Title, folder, d.name)
	}
}

func (p *printer) verdicts(r *Report) {
	for i := range r.Verdicts {
		p.item("%s", r.Verdicts[i].String())
	}
	p.line("")
}
