package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is a text table with headings. All columns are aligned to the right.
type table struct {
	title    string
	headings []string
	rows     [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table as Markdown or for a terminal.
func (t *table) write(b *strings.Builder, markdown bool) {
	widths := make([]int, len(t.headings))
	for _, row := range append([][]string{t.headings}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	title, before, between, after := t.title+"\n", "", "  ", ""
	if markdown {
		title, before, between, after = "**"+t.title+"**\n\n", "| ", " | ", " |"
	}
	b.WriteString(title)
	line := func(cells []string) {
		padded := make([]string, len(cells))
		for i, cell := range cells {
			padded[i] = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + cell
		}
		b.WriteString(before + strings.Join(padded, between) + after + "\n")
	}
	line(t.headings)
	if markdown {
		rule := make([]string, len(widths))
		for i, w := range widths {
			rule[i] = strings.Repeat("-", max(w-1, 1)) + ":"
		}
		line(rule)
	}
	for _, row := range t.rows {
		line(row)
	}
	b.WriteString("\n")
}

// formatFigure formats a number with three significant digits, or with more if the integer part is longer.
func formatFigure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// formatDuration formats a time given in µs. It uses the largest unit in which the number is at least 1.
func formatDuration(us float64) string {
	switch {
	case us >= 1e6:
		return formatFigure(us/1e6) + " s"
	case us >= 1e3:
		return formatFigure(us/1e3) + " ms"
	}
	return formatFigure(us) + " µs"
}

// formatSigned is formatFigure for numbers of either sign.
func formatSigned(v float64) string {
	if v < 0 {
		return "-" + formatFigure(-v)
	}
	return formatFigure(v)
}

// formatCount formats a number with spaces between thousands.
func formatCount(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// formatSize formats a number of bytes. It uses the largest unit in which the number is an integer.
func formatSize(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
