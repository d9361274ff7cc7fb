package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// lines draws the series, those that are compared with first, and their names at
// the right.
func (d *drawing) lines(p *Plot) {
	order := make([]int, 0, len(p.Series))
	for _, kind := range kinds {
		for i := range p.Series {
			if p.Series[i].Kind == kind {
				order = append(order, i)
			}
		}
	}
	var labels []label
	for _, i := range order {
		s := &p.Series[i]
		l := lookOf(s)
		points := p.points(s)
		if len(points) == 0 {
			continue
		}
		d.fit(s.Fit, points, l)
		d.line(points, l)
		last := points[len(points)-1]
		y := d.y.at(last.Y)
		labels = append(labels, label{name: s.Name, look: l, from: y, y: y, x: d.x.at(last.X)})
	}
	spread(labels)
	for _, l := range labels {
		d.label(l)
	}
}

// fitSteps is of how many pieces a fitted curve is.
const fitSteps = 48

// fit draws a curve over the range of the points, as far as it is in the plot:
// what is not above 0 has no place there.
func (d *drawing) fit(f func(float64) float64, points []Point, l look) {
	if f == nil {
		return
	}
	var path strings.Builder
	to := "M"
	for i := range fitSteps + 1 {
		x := d.x.between(points[0].X, points[len(points)-1].X, float64(i)/fitSteps)
		y := d.y.at(f(x))
		if !(f(x) > 0) || y < top || y > height-bottom {
			to = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", to, d.x.at(x), y)
		to = "L"
	}
	fmt.Fprintf(d.out, `<path class="fit %s" d="%s"/>`+"\n", l.class, path.String())
}

func (d *drawing) line(points []Point, l look) {
	var path strings.Builder
	for i, q := range points {
		to := "L"
		if i == 0 {
			to = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", to, d.x.at(q.X), d.y.at(q.Y))
	}
	fmt.Fprintf(d.out, `<path class="line %s" d="%s"/>`+"\n", l.class, path.String())
	for _, q := range points {
		if q.whiskered() {
			fmt.Fprintf(d.out, `<path class="whisker %s" d="M%.1f %.1fV%.1f"/>`+"\n", l.class, d.x.at(q.X), d.y.at(q.Low), d.y.at(q.High))
		}
		d.marker(d.x.at(q.X), d.y.at(q.Y), l)
	}
}

// marker draws the shape that tells a line apart where colours do not.
func (d *drawing) marker(x, y float64, l look) {
	fmt.Fprintf(d.out, `<path class="marker %s" transform="translate(%.1f %.1f)" d="%s"/>`+"\n", l.class, x, y, l.shape)
}

// label is the name of a line, with a leader from the line's end.
type label struct {
	name       string
	look       look
	x, from, y float64
}

// spread moves labels apart that would overlap, and keeps them in the plot and in
// the order of the lines' ends.
func spread(labels []label) {
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.from, b.from) })
	low := float64(top)
	for i := range labels {
		labels[i].y = max(labels[i].y, low)
		low = labels[i].y + labelStep
	}
	high := float64(height - bottom)
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].y = min(labels[i].y, high)
		high = labels[i].y - labelStep
	}
}

func (d *drawing) label(l label) {
	const start = width - right + 14
	fmt.Fprintf(d.out, `<path class="leader %s" d="M%.1f %.1fL%d %.1f"/>`+"\n", l.look.class, l.x, l.from, start, l.y)
	d.marker(start+6, l.y, l.look)
	d.text(start+18, l.y+4, "series "+l.look.class, l.name)
}
