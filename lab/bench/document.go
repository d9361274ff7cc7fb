package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// block is a part of a document, between two marks. It has the figures of the workloads
// that it is named for and of no others, and says which run they are of: so what one run
// puts into a document stays true when another one is put there for other workloads.
type block struct{ name, text string }

// The comments that mark a block.
func beginMark(name string) string { return beginAny + name + " -->" }
func endMark(name string) string   { return "<!-- end of bench: " + name + " -->" }

const beginAny = "<!-- bench: "

func (b *block) marked() string { return beginMark(b.name) + "\n" + b.text + endMark(b.name) }

// blocks returns those of all workloads that have figures: plots and tables, and then the
// verdicts.
func (r *Report) blocks(images string) []block {
	p := printer{markdown: true}
	var all []block
	for i := range r.Results {
		res := &r.Results[i]
		if len(res.Sides) == 0 {
			continue
		}
		if images != "" {
			p.images(r, res, images)
		}
		p.tables(r, res)
		p.line("**The run**\n")
		p.run(r, r.Results[i:i+1])
		all = append(all, p.take(res.Workload))
	}
	return append(all, r.aims()...)
}

// aims returns a block of verdicts for each workload, and for those that are compared with
// each other.
func (r *Report) aims() []block {
	var names []string
	verdicts := map[string][]Verdict{}
	for _, v := range r.Verdicts {
		name := aimsBlock(v.Workloads)
		if r.empty(v.Workloads) {
			continue
		}
		if verdicts[name] == nil {
			names = append(names, name)
		}
		verdicts[name] = append(verdicts[name], v)
	}
	p := printer{markdown: true}
	var all []block
	for _, name := range names {
		var titles []string
		for _, workload := range verdicts[name][0].Workloads {
			w, _ := workloadNamed(workload) // which was checked
			titles = append(titles, w.title)
		}
		m := r.Machine
		p.line("**%s**: run of %s, zrlmpid %s, %s\n", strings.Join(titles, " and "), m.Time, m.Version, m.processors())
		p.verdicts(verdicts[name])
		all = append(all, p.take(name))
	}
	return all
}

func aimsBlock(workloads []string) string { return "aims of " + strings.Join(workloads, " and ") }

// empty reports whether one of the workloads has no figures.
func (r *Report) empty(workloads []string) bool {
	for _, name := range workloads {
		if res := r.result(name); res == nil || len(res.Sides) == 0 {
			return true
		}
	}
	return false
}

// Update puts the blocks that Print writes as Markdown into a document, in the place of
// what is there between the same marks. images is the folder of the plots as the document
// names it; "" shows none. Everything else stays as it is, so also the blocks of workloads
// that have no figures in the report. If the document does not have exactly one place for
// each block, the error names all that are wrong, and the document is not changed.
func (r *Report) Update(file, images string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc := string(text)
	var problems []error
	for _, b := range r.blocks(images) {
		next, err := b.into(doc)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		doc = next
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s is not changed: %w", file, errors.Join(problems...))
	}
	return os.WriteFile(file, []byte(doc), 0o666)
}

// into returns the document with the block in its place.
func (b *block) into(doc string) (string, error) {
	begin, end := beginMark(b.name), endMark(b.name)
	before, rest, ok := strings.Cut(doc, begin+"\n")
	if !ok {
		return "", fmt.Errorf("there is no line %s: write it where the block is to be, and %s below it", begin, end)
	}
	old, after, ok := strings.Cut(rest, end)
	switch {
	case !ok || strings.Contains(old, beginAny):
		return "", fmt.Errorf("the block of %s has no end: write %s below it, before the next block", begin, end)
	case strings.Contains(after, begin+"\n"):
		return "", fmt.Errorf("there are two lines %s: leave one of them", begin)
	}
	return before + b.marked() + after, nil
}
