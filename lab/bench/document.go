package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// block is a part of a document between two marks. It contains the figures of the workload in its name, and describes
// the run that they come from.
type block struct{ name, text string }

// Comments that mark a block.
func beginMark(name string) string { return beginAny + name + " -->" }
func endMark(name string) string   { return "<!-- end of bench: " + name + " -->" }

const beginAny = "<!-- bench: "

func (b *block) marked() string { return beginMark(b.name) + "\n" + b.text + endMark(b.name) }

// blocks returns the blocks of all workloads with figures: plots, tables and the run.
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
	return all
}

// Update replaces the blocks in a document by the ones that Print writes as Markdown. images is the folder of the
// plots, relative to the document; "" omits them. All other text is unchanged, including blocks of workloads without
// figures in the report. If the document does not have exactly one place for each block, the error lists all problems
// and the document is unchanged.
func (r *Report) Update(file, images string) error { return updateDocument(file, r.blocks(images)) }

func updateDocument(file string, blocks []block) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc := string(text)
	var problems []error
	for _, b := range blocks {
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
	before, _, after, err := cutBlock(doc, b.name)
	if err != nil {
		return "", err
	}
	return before + b.marked() + after, nil
}

// cutBlock returns the text of a block in a document, and the text before and after its marks.
func cutBlock(doc, name string) (before, text, after string, err error) {
	begin, end := beginMark(name), endMark(name)
	before, rest, ok := strings.Cut(doc, begin+"\n")
	if !ok {
		return "", "", "", fmt.Errorf("there is no line %s: write it where the block is to be, and %s below it", begin, end)
	}
	text, after, ok = strings.Cut(rest, end)
	switch {
	case !ok || strings.Contains(text, beginAny):
		return "", "", "", fmt.Errorf("the block of %s has no end: write %s below it, before the next block", begin, end)
	case strings.Contains(after, begin+"\n"):
		return "", "", "", fmt.Errorf("there are two lines %s: remove one of them", begin)
	}
	return before, text, after, nil
}
