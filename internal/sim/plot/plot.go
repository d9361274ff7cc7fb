// Package plot draws lines over two logarithmic axes as SVG.
//
// The plots of zrlbench are drawn by gonum, in the module lab; it would be a dependency of all that
// import package mpi, for the sake of a few lines. Those of reports are drawn by a browser. So this is
// a writer of what zrlctl sim needs, and of no more: no bars, no fits, no other axes.
package plot

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Chart is lines over axes.
type Chart struct {
	Title string
	// X and Y name the axes with their units.
	X, Y  string
	Lines []Line
}

// Line is points in the order of X. Those without a positive finite X and Y are left out.
type Line struct {
	Name   string
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// The measures of a chart, in pixels.
const (
	width, height                        = 900, 480
	marginLeft, marginTop, marginBottom  = 80, 40, 50
	legendWidth, legendLine, legendThumb = 230, 18, 26
	tickSpace                            = 45
)

// colours can be distinguished with colour-blindness; with the dashes, lines can without colours, and where
// one lies on another.
var (
	colours = [...]string{"#0b62a8", "#c94a06", "#0a7f5e", "#6a4fb3", "#b0215b", "#57606a", "#8a6100"}
	dashes  = [...]string{"", "6 3", "2 2", "8 2 2 2"}
)

// scale maps values to pixels: low is at from and high at to.
type scale struct{ low, high, from, to float64 }

func (s *scale) at(v float64) float64 {
	return s.from + (s.to-s.from)*(math.Log(v)-math.Log(s.low))/(math.Log(s.high)-math.Log(s.low))
}

func newScale(values []float64, from, to float64) scale {
	s := scale{slices.Min(values), slices.Max(values), from, to}
	if s.low == s.high {
		s.low, s.high = s.low/2, s.high*2
	}
	return s
}

func drawable(p Point) bool {
	return p.X > 0 && p.Y > 0 && !math.IsInf(p.X, 1) && !math.IsInf(p.Y, 1)
}

// WriteSVG writes the chart as a document. A chart without a point has no axes.
func (c *Chart) WriteSVG(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(b, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height)
	text(b, marginLeft, 22, `font-size="15"`, c.Title)
	lines := c.drawn()
	var xs, ys []float64
	for _, l := range lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	if len(xs) > 0 {
		slices.Sort(xs)
		right, bottom := float64(width-legendWidth), float64(height-marginBottom)
		x, y := newScale(xs, marginLeft, right), newScale(ys, bottom, marginTop)
		c.axes(b, &x, &y, slices.Compact(xs))
		for i, l := range lines {
			l.write(b, i, &x, &y)
		}
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

// drawn returns the lines that have points, the one with the largest last value first, as in the
// legend.
func (c *Chart) drawn() (lines []Line) {
	for _, l := range c.Lines {
		l.Points = slices.DeleteFunc(slices.Clone(l.Points), func(p Point) bool { return !drawable(p) })
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int {
		last, other := a.Points[len(a.Points)-1].Y, b.Points[len(b.Points)-1].Y
		switch {
		case last > other:
			return -1
		case last < other:
			return 1
		}
		return 0
	})
	return lines
}

// fewTicks is how many ticks an axis has at least, if the values allow it.
const fewTicks = 3

// ticks returns powers of ten, or else multiples of 1, 2 and 5 times these, or else of an equal step.
func (s *scale) ticks() (list []float64) {
	for _, factors := range [...][]float64{{1}, {1, 2, 5}} {
		list = nil
		for e := math.Floor(math.Log10(s.low)); e <= math.Log10(s.high); e++ {
			for _, f := range factors {
				if v := f * math.Pow(10, e); v >= s.low && v <= s.high {
					list = append(list, v)
				}
			}
		}
		if len(list) >= fewTicks {
			return list
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	if s.high-s.low < fewTicks*step {
		step /= 5
	}
	list = nil
	for i := math.Ceil(s.low / step); i*step <= s.high; i++ {
		list = append(list, i*step)
	}
	return list
}

// axes draws a grid, with a tick for each X that has room.
func (c *Chart) axes(b *bufio.Writer, x, y *scale, xs []float64) {
	const grid = `stroke="#dde1e6"`
	before := math.Inf(-1)
	for _, v := range xs {
		at := x.at(v)
		if at-before < tickSpace {
			continue
		}
		before = at
		segment(b, at, y.from, at, y.to, grid)
		text(b, at, y.from+18, `text-anchor="middle"`, number(v))
	}
	for _, v := range y.ticks() {
		segment(b, x.from, y.at(v), x.to, y.at(v), grid)
		text(b, x.from-6, y.at(v)+4, `text-anchor="end"`, number(v))
	}
	const axis = `stroke="#24292f"`
	segment(b, x.from, y.from, x.to, y.from, axis)
	segment(b, x.from, y.from, x.from, y.to, axis)
	text(b, (x.from+x.to)/2, y.from+38, `text-anchor="middle"`, c.X)
	text(b, 16, (y.from+y.to)/2, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 16 %.1f)"`, (y.from+y.to)/2), c.Y)
}

func (l *Line) write(b *bufio.Writer, i int, x, y *scale) {
	style := fmt.Sprintf(`stroke=%q stroke-width="1.6"`, colours[i%len(colours)])
	if d := dashes[i%len(dashes)]; d != "" {
		style += fmt.Sprintf(" stroke-dasharray=%q", d)
	}
	var points strings.Builder
	for _, p := range l.Points {
		fmt.Fprintf(&points, "%.1f,%.1f ", x.at(p.X), y.at(p.Y))
	}
	fmt.Fprintf(b, "<polyline fill=\"none\" %s points=%q/>\n", style, strings.TrimSpace(points.String()))
	for _, p := range l.Points {
		fmt.Fprintf(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\" fill=%q/>\n", x.at(p.X), y.at(p.Y), colours[i%len(colours)])
	}
	left, at := float64(width-legendWidth+16), float64(marginTop+i*legendLine)
	segment(b, left, at-4, left+legendThumb, at-4, style)
	text(b, left+legendThumb+6, at, "", l.Name)
}

func segment(b *bufio.Writer, x1, y1, x2, y2 float64, style string) {
	fmt.Fprintf(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style)
}

func text(b *bufio.Writer, x, y float64, style, s string) {
	fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#24292f\" %s>", x, y, style)
	_ = xml.EscapeText(b, []byte(s)) // b keeps its error for Flush
	fmt.Fprintln(b, "</text>")
}

// number is a value as a tick has it: numbers of ranks in full.
func number(v float64) string {
	switch {
	case v < 1e5:
		return fmt.Sprintf("%.5g", v)
	case v < 1e6:
		return fmt.Sprintf("%.4gk", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.4gM", v/1e6)
	}
	return fmt.Sprintf("%.4gG", v/1e9)
}
