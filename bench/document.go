package bench

import (
	"fmt"
	"os"
	"strings"
)

// The comments that mark a section of a document.
func beginMark(name string) string { return "<!-- bench: " + name + " -->" }
func endMark(name string) string   { return "<!-- end of bench: " + name + " -->" }

// Update puts the sections that Print writes as Markdown into a document, in the
// place of what is there between the same marks. images is the folder of the plots
// as the document names it; "" shows none. Sections of workloads that the
// report does not have stay as they are. It is an error if the document has no
// place for a section of the report.
func (r *Report) Update(file, images string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc := string(text)
	for _, s := range r.sections(Format{Markdown: true, Images: images}) {
		if doc, err = replaceSection(doc, s); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return os.WriteFile(file, []byte(doc), 0o666)
}

func replaceSection(doc string, s section) (string, error) {
	begin, end := beginMark(s.name), endMark(s.name)
	before, rest, ok := strings.Cut(doc, begin+"\n")
	if !ok {
		return "", fmt.Errorf("there is no line %s", begin)
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("there is no %s after %s", end, begin)
	}
	return before + begin + "\n" + s.text + end + after, nil
}
