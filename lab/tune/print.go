package tune

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Print writes a table for readers: the medians of all algorithms and the choice, for each collective.
func Print(w io.Writer, table *collectives.Table) error {
	var b strings.Builder
	document := table.Document()
	m := document.Measured
	if document.Estimated {
		b.WriteString("Estimated by formulas; nothing was measured.\n")
	} else {
		fmt.Fprintf(&b, "Medians in µs (rounds: %d), on %s, %d cores, %s, with zrlmpid %s, at %s.\n", m.Rounds, m.CPU,
			m.Cores, m.System, m.Version, m.Time)
	}
	document.ForEachClass(func(name choice.Class, classTable *collectives.ClassTable) {
		over := ""
		if classTable.Transport != "" {
			over = ", over " + classTable.Transport
		}
		fmt.Fprintf(&b, "\n== %s%s: a message of n bytes takes %.4g µs + n × %.4g ns ==\n", name, over,
			classTable.Link.Alpha/1000, classTable.Link.Beta)
		for i := 0; i < len(classTable.Collectives); {
			same := i + 1
			for same < len(classTable.Collectives) &&
				classTable.Collectives[same].Collective == classTable.Collectives[i].Collective {
				same++
			}
			printCollective(&b, classTable.Collectives[i:same])
			i = same
		}
	})
	_, err := io.WriteString(w, b.String())
	return err
}

// printCollective writes the entries of a collective. For each algorithm, it writes the time with the fastest segment
// size.
func printCollective(b *strings.Builder, entries []collectives.Entry) {
	of := coll.Collective(entries[0].Collective)
	fmt.Fprintf(b, "\n%s\n", choice.CollectiveName(of))
	var names []string // the algorithms in all entries, in the order in which they first appear
	for _, e := range entries {
		for _, s := range e.Medians {
			if !slices.Contains(names, s.Choice.Algorithm) {
				names = append(names, s.Choice.Algorithm)
			}
		}
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(ranks, bytes string, cells []string, taken string) {
		fmt.Fprintln(t, strings.Join(slices.Concat([]string{ranks, bytes}, cells, []string{taken, ""}), "\t"))
	}
	row("RANKS", "BYTES", names, "TAKEN")
	for _, entry := range entries {
		cells := make([]string, len(names))
		for i, n := range entry.Bytes {
			for j, name := range names {
				cells[j] = fastest(&entry, name, i)
			}
			row(fmt.Sprint(entry.Ranks), length(of, n), cells, chosenText(&entry, n))
		}
		if len(entry.Bytes) == 0 { // the entry was written by hand
			for _, d := range entry.Decisions {
				row(fmt.Sprint(entry.Ranks), limitText(d), slices.Repeat([]string{noTime}, len(names)), d.Choices[0].String())
			}
		}
	}
	_ = t.Flush() // writing to a Builder never fails
}

// fastest returns the shortest time of an algorithm at a length, and the segment size used.
func fastest(e *collectives.Entry, algorithm string, i int) string {
	least, by := 0.0, choice.Choice{}
	for _, s := range e.Medians {
		if us := s.Micros[i]; s.Choice.Algorithm == algorithm && us > 0 && (least == 0 || us < least) {
			least, by = us, s.Choice
		}
	}
	text := formatMicros(least)
	if _, segment, ok := strings.Cut(by.String(), ":"); ok {
		text += " (" + segment + ")"
	}
	return text
}

// chosenText returns the choice of an entry for a length.
func chosenText(e *collectives.Entry, n int) string {
	for _, d := range e.Decisions {
		if d.MaxBytes == nil || n <= int(*d.MaxBytes) {
			return d.Choices[0].String()
		}
	}
	return ""
}

func length(of coll.Collective, n int) string {
	if of == coll.Barrier {
		return ""
	}
	return bytesize.Size(n).String()
}

func limitText(d collectives.Decision) string {
	if d.MaxBytes == nil {
		return "any"
	}
	return "≤" + d.MaxBytes.String()
}

// noTime is shown in place of a missing measurement.
const noTime = "-"

// formatMicros formats a time with three significant digits, or with more if the integer part is longer.
func formatMicros(us float64) string {
	switch {
	case us == 0:
		return noTime
	case us >= 100:
		return fmt.Sprintf("%.0f", us)
	}
	return fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(us))), us)
}
