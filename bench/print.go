package main

import (
	"fmt"
	"io"
)

// print writes the tables and what there is to know about them.
func (r *report) print(out io.Writer, markdown bool) error {
	p := printer{out: out, markdown: markdown}
	p.machine(r)
	for _, t := range r.tables() {
		if err := t.write(out, markdown); err != nil {
			return err
		}
	}
	verified := 0
	for _, s := range r.Sides {
		verified += s.Verified
	}
	p.line("%s messages, all verified.", count(verified))
	for _, v := range r.verdicts() {
		p.line("%s", v)
	}
	for _, m := range r.Missing {
		p.line("*** %s ***", m)
	}
	return p.err
}

type printer struct {
	out      io.Writer
	markdown bool
	err      error
}

func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	end := "\n"
	if p.markdown {
		end = "\n\n" // a paragraph
	}
	_, p.err = fmt.Fprintf(p.out, format+end, args...)
}

func (p *printer) machine(r *report) {
	m := r.Machine
	p.line("%s: median of %d round(s), all sides in turn; %s", workloads[r.Workload].title, r.Rounds, m.Time)
	p.line("%d × %s, %s, %s, zrlmpid %s", m.Cores, m.CPU, m.System, m.Go, m.Revision)
	p.line("load average %s before, %s after", m.LoadBefore, m.LoadAfter)
	seen := map[string]bool{}
	for _, s := range r.Sides {
		if s.Peer && !seen[s.Version] {
			seen[s.Version] = true
			p.line("%s", s.Version)
		}
	}
	if !p.markdown {
		p.line("")
	}
}

// tables returns the workload's tables.
func (r *report) tables() []*table {
	switch r.Workload {
	case "queues":
		return r.queueTables()
	default:
		return r.pingPongTables()
	}
}

func (r *report) columns(title, first string) *table {
	t := &table{title: title, headings: []string{first}}
	for _, s := range r.Sides {
		t.headings = append(t.headings, s.Name)
	}
	return t
}

func (r *report) queueTables() []*table {
	latency := r.columns("Half round trip in µs, p50, and how many times that of depth 0", "posted")
	unload := r.columns("Time to unload the queue in reverse order, in ms", "posted")
	unload.headings = append(unload.headings, "zrlmpid / better peer")
	for i, n := range r.ns() {
		row, times := []string{count(n)}, []string{count(n)}
		for _, s := range r.Sides {
			row = append(row, fmt.Sprintf("%s ×%.2f", figure(s.Median[i].P50), s.Median[i].P50/s.Median[0].P50))
			times = append(times, figure(s.Median[i].Unload/1e3))
		}
		latency.add(row...)
		if n > 0 {
			ratio := "–"
			if v, ok := r.unloadRatio(i); ok {
				ratio = figure(v)
			}
			unload.add(append(times, ratio)...)
		}
	}
	return []*table{latency, unload}
}

// unloadRatio is zrlmpid's time to unload at step i as a part of the better
// peer's.
func (r *report) unloadRatio(i int) (float64, bool) {
	var ours, best float64
	for _, s := range r.Sides {
		t := s.Median[i].Unload
		switch {
		case !s.Peer:
			ours = t
		case best == 0 || t < best:
			best = t
		}
	}
	return ours / best, ours > 0 && best > 0
}

// verdicts compares the figures with what is aimed at.
func (r *report) verdicts() []string {
	if r.Workload != "queues" || len(r.ns()) == 0 {
		return nil
	}
	var all []string
	last := len(r.ns()) - 1
	depth := count(r.ns()[last])
	if s := r.side(extendedUDP.key); s != nil {
		all = append(all, fmt.Sprintf("zrlmpid's half round trip at %s posted receives is %.2f times that at %s; the aim is about 1.",
			depth, s.Median[last].P50/s.Median[0].P50, count(r.ns()[0])))
	}
	if v, ok := r.unloadRatio(last); ok {
		all = append(all, fmt.Sprintf("zrlmpid unloads %s in %.4f times the better peer's time; the aim is less than 0.1.", depth, v))
	}
	return all
}

func (r *report) pingPongTables() []*table {
	latency := r.columns("Half round trip in µs, p50 / p99", "message")
	rate := r.columns("MB/s (10⁶ bytes, by the p50)", "message")
	base := r.side(workloads[r.Workload].base)
	var ratio *table
	if base != nil {
		ratio = r.columns("Half round trip (p50) as a multiple of that of "+base.Name, "message")
	}
	for i, n := range r.ns() {
		row, rates, ratios := []string{size(n)}, []string{size(n)}, []string{size(n)}
		for _, s := range r.Sides {
			p := s.Median[i]
			row = append(row, figure(p.P50)+" / "+figure(p.P99))
			rates = append(rates, figure(float64(n)/p.P50))
			if base != nil {
				ratios = append(ratios, fmt.Sprintf("%.2f", p.P50/base.Median[i].P50))
			}
		}
		latency.add(row...)
		rate.add(rates...)
		if ratio != nil {
			ratio.add(ratios...)
		}
	}
	all := []*table{latency, rate}
	if ratio != nil {
		all = append(all, ratio)
	}
	return all
}
