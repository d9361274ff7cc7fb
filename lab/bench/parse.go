package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// outcome holds the parsed output of the programs that were run for a side.
type outcome struct {
	// points holds the measured points, one list for each part of the side.
	points   [][]Point
	verified int
	// memory is the largest peak memory of any process in KiB, or 0 if unknown.
	memory int
	// notes are remarks of rank 0.
	notes []string
	// cut lists the steps that would have exceeded their share of time. reduced lists the steps that ran with fewer
	// iterations to stay within theirs.
	cut     []CutStep
	reduced []step
}

// add appends the outcome of further steps.
func (o *outcome) add(other *outcome) {
	for i, points := range other.points {
		o.points[i] = append(o.points[i], points...)
	}
	o.verified += other.verified
	o.memory = max(o.memory, other.memory)
	o.notes = append(o.notes, other.notes...)
}

// notePrefix begins a line of output that is a remark.
const notePrefix = "note"

// parseOutput parses the output of rank 0, which has the same format in Go and C: one line for each part of each step,
// in order, and then the memory and the number of verified messages. It skips other lines, such as the progress of a
// step or messages of a launcher. It returns an error if the output is incomplete because the program exited early.
func parseOutput(out []byte, w *workload, steps []step, parts int) (outcome, error) {
	var o outcome
	var points []Point
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		var err error
		switch words[0] {
		case "point":
			var p Point
			p, err = parsePoint(words[1:], w)
			points = append(points, p)
		case "memory":
			o.memory, err = parseCount(words[1], o.memory, func(a, b int) int { return max(a, b) })
		case notePrefix:
			o.notes = append(o.notes, strings.Join(words[1:], " "))
		case "verified":
			o.verified, err = parseCount(words[1], o.verified, func(a, b int) int { return a + b })
		}
		if err != nil {
			return outcome{}, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return outcome{}, err
	}
	return o, o.check(points, w, steps, parts)
}

// parsePoint parses a step's number and figures.
func parsePoint(words []string, w *workload) (Point, error) {
	var point Point
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return point, err
	}
	point.N = n
	for pair := range slices.Chunk(words[1:], 2) {
		value := point.figure(pair[0])
		if value == nil || len(pair) < 2 {
			return point, fmt.Errorf("there is no figure %q", pair[0])
		}
		if *value, err = strconv.ParseFloat(pair[1], 64); err != nil {
			return point, err
		}
		if !(*value >= 0) || math.IsInf(*value, 0) {
			return point, fmt.Errorf("%s: a figure is 0 or more", pair[0])
		}
	}
	for _, name := range w.requiredFigures {
		// For a few messages, the processor time may be shorter than the resolution of the clock that measures it.
		if name != "cpu" && *point.figure(name) == 0 {
			return point, fmt.Errorf("%s: a message that takes no time", name)
		}
	}
	return point, nil
}

// parseCount parses a non-negative number. It combines the number with the previous value by means of the function add,
// and returns the result.
func parseCount(text string, before int, add func(a, b int) int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return add(before, int(n)), err
}

// check verifies that the output covers the requested steps.
func (o *outcome) check(points []Point, w *workload, steps []step, parts int) error {
	if want := parts * len(steps); len(points) != want {
		return fmt.Errorf("%d figures for %d steps", len(points), want)
	}
	for i, p := range points {
		if n := steps[i/parts].n; p.N != n {
			return fmt.Errorf("figure %d is of %d %s and not of %d", i+1, p.N, w.unit, n)
		}
	}
	if want := parts * w.total(steps); o.verified != want {
		return fmt.Errorf("%d messages were verified of %d", o.verified, want)
	}
	o.points = make([][]Point, parts)
	for i, p := range points {
		o.points[i%parts] = append(o.points[i%parts], p)
	}
	return nil
}
