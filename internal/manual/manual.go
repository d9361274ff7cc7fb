// Package manual makes manual pages out of Markdown and of the help that commands
// print. It is for the generators behind `make man` only: no program that users run
// may import it.
package manual

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// Title is the centre of each page's head.
const Title = "zrlmpid manual"

// Date returns the date that pages bear: that of SOURCE_DATE_EPOCH, seconds since
// 1970, where it is set, so that the same source makes the same pages; else now.
func Date() (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Page returns the manual page, in roff, that the Markdown text makes. Section is a
// digit, source what stands at the page's foot.
func Page(name, section, source string, date time.Time, markdown string) []byte {
	head := fmt.Sprintf("%% %q %q %q %q %q\n", strings.ToUpper(name), section, date.Format("Jan 2006"), source, Title)
	return md2man.Render([]byte(head + markdown))
}

// Escape returns text with what Markdown takes for markup escaped.
func Escape(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "[", `\[`)

// columns is a line of a table: words, a gap, words.
var columns = regexp.MustCompile(`\S {2,}\S`)

// Help returns help text as Markdown: tables and blocks of indented lines stay as they
// are, and all else is filled.
func Help(text string) string {
	var b strings.Builder
	before := byte(0) // how the line before began
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		first := byte('\n')
		if line != "" {
			first = line[0]
		}
		if columns.MatchString(line) {
			first = ' '
		}
		switch {
		case first == ' ':
			if before != ' ' && before != '\n' {
				b.WriteByte('\n')
			}
			b.WriteString("    " + line)
		case before == ' ' && first != '\n':
			b.WriteString("\n" + Escape(line))
		default:
			b.WriteString(Escape(line))
		}
		b.WriteByte('\n')
		before = first
	}
	return b.String()
}
