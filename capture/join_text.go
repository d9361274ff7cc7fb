package capture

import (
	"fmt"
	"math"
	"strings"
)

// Lines describes how recordings were joined. The first line counts the common packets. Then follow a line for each
// vantage point, a line for each pair of vantage points between which packets went missing, and a line about unmatched
// packets, if any.
func (j *JoinInfo) Lines() []string {
	if len(j.Vantages) == 1 {
		return []string{fmt.Sprintf("joined: %s of one place, one after the other",
			formatCount(int64(len(j.Vantages[0].Files)), "file"))}
	}
	lines := []string{fmt.Sprintf("joined: recordings of %d places, %s, %d of them recorded at more than one",
		len(j.Vantages), formatCount(j.Packets, "packet"), j.Common)}
	for i := range j.Vantages {
		point := &j.Vantages[i]
		line := fmt.Sprintf("%s: %s, %d only here", strings.Join(point.Files, ", "), formatCount(point.Packets, "packet"),
			point.Only)
		switch {
		case i == 0:
		case point.Clock == nil:
			line += "; no packet is in common with the others: its clock cannot be compared with theirs, and times " +
				"are as recorded"
		default:
			line += "; its clock " + point.Clock.text()
		}
		if point.Dropped > 0 {
			line += fmt.Sprintf("; its recorder lost %s: packets missing from it are not reported as lost on the way",
				formatCount(point.Dropped, "packet"))
		}
		lines = append(lines, line)
	}
	for _, m := range j.Missing {
		lines = append(lines, fmt.Sprintf("%s on the way from %s not seen at %s", formatCount(m.Packets, "packet"), m.From,
			m.To))
	}
	if j.Undecided > 0 {
		lines = append(lines, formatCount(j.Undecided, "packet")+" not matched: too many were in flight")
	}
	return lines
}

// text describes the difference between this clock and the reference clock.
func (c *Clock) text() string {
	way := "ahead"
	if c.Offset < 0 {
		way = "behind"
	}
	text := fmt.Sprintf("is %.6f s %s", math.Abs(c.Offset), way)
	by := formatCount(int64(c.Packets), "packet")
	if c.Uncertainty != nil {
		text += fmt.Sprintf(" (± %.1f µs, by %s)", *c.Uncertainty*1e6, by)
	} else {
		text += fmt.Sprintf(" (with the delay of the path, as %s of only one direction are in both)", by)
	}
	if c.Drift != 0 {
		text += fmt.Sprintf(" and drifts by %.1f ppm", c.Drift*1e6)
	}
	return text + ": corrected"
}
