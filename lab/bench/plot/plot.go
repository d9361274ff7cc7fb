// Package plot draws lines over two logarithmic axes as SVG, for people: named
// axes with units, a name at the end of each line, and colours that can be told
// apart, by the colour-blind too, on light and dark pages.
//
// It must never invent a point: what cannot be drawn to scale is left out.
package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Plot is lines over two logarithmic axes. 0 has a place of its own, left of all
// other X. Points with another X below 0 or a Y that is not above 0 are left out.
type Plot struct {
	Title string
	// Note is a line below the title: what the points are, and which end of Y
	// is the better one.
	Note   string
	X, Y   Axis
	Series []Series
}

// Axis says what an axis measures.
type Axis struct {
	Name string
	Unit Unit
}

// Series is a line.
type Series struct {
	Name string
	Kind Kind
	// Look is which of the looks of its kind the line has, so that it looks alike
	// in all plots.
	Look   int
	Points []Point
	// Fit is a curve through the points, which is drawn thin from the first to
	// the last of them; nil is none.
	Fit func(x float64) float64
}

// Point is a place on a line. Low and High are the ends of a whisker through it;
// there is none if they are equal or not above 0.
type Point struct{ X, Y, Low, High float64 }

func (q Point) whiskered() bool { return q.Low > 0 && q.High > q.Low && !math.IsInf(q.High, 0) }

// The plot's measures in pixels.
const (
	width, height = 920, 500
	left, right   = 98, 214 // names of the lines are on the right
	top, bottom   = 72, 64
	labelStep     = 19 // between names of lines
)

// SVG returns the plot as an SVG document of a fixed size.
func (p *Plot) SVG() []byte {
	var b strings.Builder
	d := drawing{out: &b, x: p.xScale(), y: p.yScale()}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n", html.EscapeString(p.Title))
	b.WriteString(sheet())
	fmt.Fprintf(&b, `<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	d.text(left, 30, "heading", p.Title)
	d.text(left, 50, "tick", p.Note)
	d.grid(p)
	d.lines(p)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// points returns what can be drawn of a series.
func (p *Plot) points(s *Series) []Point {
	var points []Point
	for _, q := range s.Points {
		if q.X >= 0 && q.Y > 0 && !math.IsInf(q.X, 0) && !math.IsInf(q.Y, 0) {
			points = append(points, q)
		}
	}
	return points
}

// drawing is an SVG document that is being written.
type drawing struct {
	out  *strings.Builder
	x, y scale
}

func (d *drawing) text(x, y float64, class, text string) {
	fmt.Fprintf(d.out, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}

// grid draws the axes.
func (d *drawing) grid(p *Plot) {
	for _, t := range d.x.ticks(p.X.Unit) {
		x := d.x.at(t.value)
		fmt.Fprintf(d.out, `<path class="grid" d="M%.1f %dV%d"/>`+"\n", x, top, height-bottom)
		if t.label != "" {
			d.text(x, height-bottom+20, "tick x", t.label)
		}
	}
	for _, t := range d.y.ticks(p.Y.Unit) {
		y := d.y.at(t.value)
		fmt.Fprintf(d.out, `<path class="grid" d="M%d %.1fH%d"/>`+"\n", left, y, width-right)
		if t.label != "" {
			d.text(left-8, y+4, "tick y", t.label)
		}
	}
	fmt.Fprintf(d.out, `<path class="axis" d="M%d %dV%dH%d"/>`+"\n", left, top, height-bottom, width-right)
	d.text((left+width-right)/2, height-16, "name x", p.X.Name+", logarithmic")
	fmt.Fprintf(d.out, `<text class="name x" transform="translate(20 %d) rotate(-90)">%s</text>`+"\n",
		(top+height-bottom)/2, html.EscapeString(p.Y.Name+", logarithmic"))
}
