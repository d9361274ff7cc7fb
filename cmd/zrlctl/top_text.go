package main

import (
	"strings"
	"unicode/utf8"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// maxSpanLen is the maximum length of a span in characters.
const maxSpanLen = 1000

// style is a text style for a terminal, written as the parameters of an SGR sequence.
type style string

const (
	plain   style = ""
	bold    style = "1"
	faint   style = "2"
	red     style = "31"
	yellow  style = "33"
	green   style = "32"
	boldRed style = "1;31"
	inverse style = "7"
)

// span is a part of a line in one style. Characters that would move the cursor are omitted when it is drawn.
type span struct {
	text  string
	style style
}

// styledLine is a line that consists of spans.
type styledLine []span

// plainText returns lines without styles.
func plainText(lines []styledLine) string {
	var b strings.Builder
	for _, l := range lines {
		var line strings.Builder
		for _, s := range l {
			line.WriteString(words.Clean(s.text, maxSpanLen))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// wrap breaks a line at spaces into lines of at most width characters. It does not break longer words. It indents all
// lines but the first by indent. A width of 0 disables wrapping.
func (l styledLine) wrap(width, indent int) []styledLine {
	if width <= 2*indent {
		return []styledLine{l}
	}
	var lines []styledLine
	line, used, gap := styledLine{}, 0, ""
	for _, s := range l {
		for i, word := range strings.Split(words.Clean(s.text, maxSpanLen), " ") {
			if i > 0 {
				gap += " "
			}
			n := utf8.RuneCountInString(word)
			if n == 0 {
				continue
			}
			if used > indent && used+len(gap)+n > width {
				lines = append(lines, line)
				line, used, gap = styledLine{{strings.Repeat(" ", indent), plain}}, indent, ""
			}
			line = append(line, span{gap + word, s.style})
			used, gap = used+len(gap)+n, ""
		}
	}
	return append(lines, line)
}

// drawTo writes the part of a line that fits in the given width. The parameter colours enables colors.
func (l styledLine) drawTo(b *strings.Builder, width int, colours bool) {
	for _, s := range l {
		if width <= 0 {
			return
		}
		cut := words.Clean(s.text, maxSpanLen)
		if n := utf8.RuneCountInString(cut); n > width {
			cut = string([]rune(cut)[:width-1]) + "…"
		}
		width -= utf8.RuneCountInString(cut)
		if s.style == plain || !colours && s.style != inverse {
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

func (t *table) addRow(s style, cells ...string) {
	t.rows, t.styles = append(t.rows, cells), append(t.styles, s)
}

// minWrapWidth is the minimum width of a column with wrapped cells.
const minWrapWidth = 24

// lines returns the table as lines of the given width; 0 means no limit. It wraps the cells of the last column if they
// have at least minWrapWidth characters; draw truncates other long lines.
func (t *table) lines(width int) []styledLine {
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
	line := func(cells []string, s style) styledLine {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if right[i] {
				c, pad = pad+c, ""
			}
			b.WriteString("  " + c + pad)
		}
		return styledLine{{strings.TrimRight(b.String(), " "), s}}
	}
	before := 2
	for _, w := range widths[:len(widths)-1] {
		before += w + 2
	}
	if width < before+minWrapWidth {
		width = 0
	}
	lines := []styledLine{line(names, faint)}
	for i, r := range t.rows {
		lines = append(lines, line(r, t.styles[i]).wrap(width, before)...)
	}
	return lines
}
