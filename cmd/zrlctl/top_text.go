package main

import (
	"strings"
	"unicode/utf8"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// maxLine is the maximum number of characters in a piece of a line.
const maxLine = 1000

// style is a text style of a terminal: the parameters of an SGR sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	yellow style = "33"
	green  style = "32"
	loud   style = "1;31"
	marked style = "7"
)

// span is a piece of a line. Characters that would move the cursor are omitted from the output.
type span struct {
	text  string
	style style
}

// text is a line that consists of spans.
type text []span

// plainText returns lines without styles.
func plainText(lines []text) string {
	var b strings.Builder
	for _, l := range lines {
		var line strings.Builder
		for _, s := range l {
			line.WriteString(words.Clean(s.text, maxLine))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// wrap breaks a line at spaces into lines of at most width characters. A longer word is not broken. All lines but the
// first are indented by indent. A width of 0 means no limit.
func (l text) wrap(width, indent int) []text {
	if width <= 2*indent {
		return []text{l}
	}
	var lines []text
	line, used, gap := text{}, 0, ""
	for _, s := range l {
		for i, word := range strings.Split(words.Clean(s.text, maxLine), " ") {
			if i > 0 {
				gap += " "
			}
			n := utf8.RuneCountInString(word)
			if n == 0 {
				continue
			}
			if used > indent && used+len(gap)+n > width {
				lines = append(lines, line)
				line, used, gap = text{{strings.Repeat(" ", indent), plain}}, indent, ""
			}
			line = append(line, span{gap + word, s.style})
			used, gap = used+len(gap)+n, ""
		}
	}
	return append(lines, line)
}

// draw writes the part of a line that fits in width. colours selects whether it uses colors.
func (l text) draw(b *strings.Builder, width int, colours bool) {
	for _, s := range l {
		if width <= 0 {
			return
		}
		cut := words.Clean(s.text, maxLine)
		if n := utf8.RuneCountInString(cut); n > width {
			cut = string([]rune(cut)[:width-1]) + "…"
		}
		width -= utf8.RuneCountInString(cut)
		if s.style == plain || !colours && s.style != marked {
			b.WriteString(cut)
			continue
		}
		b.WriteString("\x1b[" + string(s.style) + "m" + cut + "\x1b[0m")
	}
}

// table is a table of text. Columns whose names begin with > are right-aligned.
type table struct {
	names  []string
	rows   [][]string
	styles []style // by row
}

func (t *table) add(s style, cells ...string) {
	t.rows, t.styles = append(t.rows, cells), append(t.styles, s)
}

// minWrapped is the minimum width of a column with wrapped cells.
const minWrapped = 24

// lines returns the table as lines of the given width; 0 means no limit. It wraps the cells of the last column if they
// have at least minWrapped characters; draw truncates other long lines.
func (t *table) lines(width int) []text {
	names := make([]string, len(t.names))
	widths := make([]int, len(names))
	right := make([]bool, len(names))
	for i, n := range t.names {
		names[i], right[i] = strings.CutPrefix(n, ">")
		widths[i] = utf8.RuneCountInString(names[i])
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	line := func(cells []string, s style) text {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if right[i] {
				c, pad = pad+c, ""
			}
			b.WriteString("  " + c + pad)
		}
		return text{{strings.TrimRight(b.String(), " "), s}}
	}
	before := 2
	for _, w := range widths[:len(widths)-1] {
		before += w + 2
	}
	if width < before+minWrapped {
		width = 0
	}
	lines := []text{line(names, faint)}
	for i, r := range t.rows {
		lines = append(lines, line(r, t.styles[i]).wrap(width, before)...)
	}
	return lines
}
