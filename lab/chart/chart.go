// Package chart draws line charts with logarithmic axes as SVG. The charts show measurements and simulations.
package chart

import (
	"bytes"
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is a set of lines over two logarithmic axes. Points with a negative X, or with a Y of 0 or less, are not drawn.
// If no point of a series can be drawn, the legend omits the series.
type Chart struct {
	Title string
	// Note is a line of text below the title.
	Note   string
	X, Y   Axis
	Series []Series
}

// Axis describes an axis.
type Axis struct {
	Name string
	Unit Unit
}

// Series is a line with markers.
type Series struct {
	Name string
	Kind Kind
	// Variant selects the colour, dashes and marker of the series from the styles available for its kind.
	Variant int
	Points  []Point
	// Fit, if not nil, is a curve that is drawn as a thin line from the first point to the last.
	Fit func(x float64) float64
}

// Point is a marker of a series. If High exceeds Low, a bar is drawn from Low to High.
type Point struct{ X, Y, Low, High float64 }

// Kind is the style of a line.
type Kind uint8

// Kinds of lines, in drawing order.
const (
	Limit  Kind = iota // a limit of the machine
	Peer               // another library
	Method             // an algorithm of zrlmpid
	Ours               // zrlmpid
	Model              // a simulation
)

// The dimensions of a chart in points, and the maximum number of points on a curve.
const (
	chartWidth   vg.Length = 800
	chartHeight  vg.Length = 400
	legendWidth  vg.Length = 275
	headHeight   vg.Length = 40
	legendIndent vg.Length = 12
	fitPoints              = 50
)

// lineStyles holds the line styles for each kind of series. Readers with colour blindness can distinguish the colours,
// and readers without colours the dashes and markers.
var lineStyles = [...]struct {
	width   vg.Length
	colours []color.Color
	dashes  [][]vg.Length
	marker  int
}{
	Limit: {1.3, []color.Color{rgb(0x57606a)}, [][]vg.Length{{1, 2}, {3, 2}, {1, 2, 3, 2}, {6, 2}}, 5},
	Peer: {1.3, []color.Color{rgb(0x8a6100), rgb(0xa3468a), rgb(0x3d6b1f), rgb(0x7a3b22)},
		[][]vg.Length{{5, 3}, {2, 2}, {7, 2, 2, 2}, {9, 3}}, 3},
	Method: {1.1, []color.Color{rgb(0x6a4fb3), rgb(0x0a7f5e), rgb(0x57606a), rgb(0xb0215b), rgb(0x0b62a8),
		rgb(0x007c9b), rgb(0x7a3b22)}, [][]vg.Length{nil}, 1},
	Model: {1.3, []color.Color{rgb(0x0b62a8), rgb(0xc94a06), rgb(0x0a7f5e), rgb(0x6a4fb3), rgb(0xb0215b), rgb(0x57606a),
		rgb(0x8a6100)}, [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}, 0},
	Ours: {2, []color.Color{rgb(0x0b62a8), rgb(0x6a4fb3), rgb(0xc94a06), rgb(0x0a7f5e), rgb(0xb0215b), rgb(0x24292f)},
		[][]vg.Length{nil}, 0},
}

var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{},
	draw.TriangleGlyph{}, draw.PlusGlyph{},
}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

// Colours returns the number of different colours available for series of this kind.
func (k Kind) Colours() int { return len(lineStyles[k].colours) }

// variantOf returns element i of a list. After the last element, the list starts over.
func variantOf[T any](list []T, i int) T { return list[i%len(list)] }

func (s *Series) lineStyle() draw.LineStyle {
	st := &lineStyles[s.Kind]
	return draw.LineStyle{Color: variantOf(st.colours, s.Variant), Width: st.width,
		Dashes: variantOf(st.dashes, s.Variant)}
}

func (s *Series) glyphStyle() draw.GlyphStyle {
	st := &lineStyles[s.Kind]
	return draw.GlyphStyle{Color: variantOf(st.colours, s.Variant), Radius: 2.6,
		Shape: variantOf(markers, st.marker+s.Variant)}
}

// drawablePoints returns the points of the series s that can be drawn.
func (s *Series) drawablePoints() []Point {
	finite := func(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) }
	return slices.DeleteFunc(slices.Clone(s.Points), func(d Point) bool {
		return !(d.X >= 0 && d.Y > 0) || !finite(d.X) || !finite(d.Y)
	})
}

// hasBar reports whether the point d is drawn with a bar from its low to its high value.
func (d Point) hasBar() bool { return d.Low > 0 && d.High > d.Low && !math.IsInf(d.High, 0) }

// SVG returns the chart as an SVG document.
func (c *Chart) SVG() ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	legend := plot.NewLegend()
	legend.Top, legend.Left, legend.ThumbnailWidth, legend.Padding = true, true, 26, 3
	legend.TextStyle.Font.Size = 9
	x, scale := c.ranges()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x.low, x.high, scale.low, scale.high
	p.X.Scale, p.Y.Scale = x, scale
	p.X.Tick.Marker, p.Y.Tick.Marker = ticker{c.X.Unit, x.minPositive, c.xValues()}, ticker{c.Y.Unit, scale.minPositive,
		nil}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size, a.Padding = 10, 9, 0
	}
	p.X.Label.Text, p.Y.Label.Text = c.X.Name, c.Y.Name
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = rgb(0xdde1e6), rgb(0xdde1e6)
	p.Add(grid)

	drawn := slices.Clone(c.Series)
	slices.SortStableFunc(drawn, func(a, b Series) int { return cmp.Compare(a.Kind, b.Kind) })
	drawn = slices.DeleteFunc(drawn, func(s Series) bool { return len(s.drawablePoints()) == 0 })
	for i := range drawn {
		if err := drawn[i].addTo(p, scale); err != nil {
			return nil, err
		}
	}
	// The legend lists the lines from top to bottom, as they appear at their right ends.
	slices.SortStableFunc(drawn, func(a, b Series) int { return -cmp.Compare(a.last().Y, b.last().Y) })
	for i := range drawn {
		s := &drawn[i]
		legend.Add(s.Name, &plotter.Line{LineStyle: s.lineStyle()}, &plotter.Scatter{GlyphStyle: s.glyphStyle()})
	}

	image := vgsvg.New(chartWidth, chartHeight)
	whole := draw.New(image)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	head := p.Title.TextStyle
	head.XAlign, head.YAlign = draw.XLeft, draw.YTop
	head.Font.Size = 13
	whole.FillText(head, vg.Point{X: 8, Y: chartHeight - 6}, c.Title)
	head.Font.Size, head.Color = 9, rgb(0x57606a)
	whole.FillText(head, vg.Point{X: 8, Y: chartHeight - 24}, c.Note)
	p.Draw(draw.Crop(whole, 4, -legendWidth, 4, -headHeight))
	legend.Draw(draw.Crop(whole, chartWidth-legendWidth+legendIndent, 0, 0, -headHeight))
	var b bytes.Buffer
	if _, err := image.WriteTo(&b); err != nil {
		return nil, err
	}
	// Viewers on which this font is not installed use a similar one.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")), nil
}

func (s *Series) last() Point {
	points := s.drawablePoints()
	return points[len(points)-1]
}

// addTo adds the curve, the line and the bars of the series to a plot.
func (s *Series) addTo(p *plot.Plot, scale logScale) error {
	points := s.drawablePoints()
	line := make(plotter.XYs, len(points))
	var bars struct {
		plotter.XYs
		plotter.YErrors
	}
	for i, d := range points {
		line[i] = plotter.XY{X: d.X, Y: d.Y}
		if d.hasBar() {
			bars.XYs = append(bars.XYs, line[i])
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{d.Y - d.Low, d.High - d.Y})
		}
	}
	thin := draw.LineStyle{Color: s.lineStyle().Color, Width: 0.5}
	if s.Fit != nil {
		for _, piece := range s.fitSegments(points, scale) {
			p.Add(&plotter.Line{XYs: piece, LineStyle: thin})
		}
	}
	if len(bars.XYs) > 0 {
		b, err := plotter.NewYErrorBars(bars)
		if err != nil {
			return err
		}
		b.LineStyle, b.CapWidth = thin, 3
		p.Add(b)
	}
	p.Add(&plotter.Line{XYs: line, LineStyle: s.lineStyle()}, &plotter.Scatter{XYs: line, GlyphStyle: s.glyphStyle()})
	return nil
}

// fitSegments returns the segments of the fit, from the first point to the last, that lie within the axis y. It skips a
// first point at 0, which has no place on a logarithmic axis.
func (s *Series) fitSegments(points []Point, scale logScale) (pieces []plotter.XYs) {
	if points[0].X == 0 {
		points = points[1:]
	}
	if len(points) < 2 {
		return nil
	}
	from, to := points[0].X, points[len(points)-1].X
	var piece plotter.XYs
	for i := range fitPoints + 1 {
		x := from * math.Pow(to/from, float64(i)/fitPoints)
		if v := s.Fit(x); v >= scale.low && v <= scale.high {
			piece = append(piece, plotter.XY{X: x, Y: v})
			continue
		}
		if len(piece) > 1 {
			pieces = append(pieces, piece)
		}
		piece = nil
	}
	if len(piece) > 1 {
		pieces = append(pieces, piece)
	}
	return pieces
}

// xValues returns the X values of all drawn points in ascending order.
func (c *Chart) xValues() []float64 {
	var all []float64
	for i := range c.Series {
		for _, d := range c.Series[i].drawablePoints() {
			all = append(all, d.X)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ranges returns the scales of both axes.
func (c *Chart) ranges() (x, y logScale) {
	var ys []float64
	for i := range c.Series {
		for _, d := range c.Series[i].drawablePoints() {
			ys = append(ys, d.Y)
			if d.hasBar() {
				ys = append(ys, d.Low, d.High)
			}
		}
	}
	return newLogScale(c.xValues(), 1), newLogScale(ys, 1.08)
}
