package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
)

func example() *Plot {
	return &Plot{
		Title: "Cats & dogs", Note: "lower is better", X: Axis{"receives", Count}, Y: Axis{"time", Microseconds},
		Series: []Series{
			{Name: "ours", Kind: Strong, Fit: func(x float64) float64 { return 10 + x/1e5 }, Points: []Point{{0, 10, 9, 12}, {1, 10, 0, 0}, {30000, 11, 11, 11}}},
			{Name: "<theirs>", Points: []Point{{0, 0.4, 0, 0}, {1, 0.5, 0, 0}, {30000, 500, 0, 0}}},
		},
	}
}

// wellFormed reads an SVG document, and returns the texts in it.
func wellFormed(t *testing.T, svg []byte) []string {
	t.Helper()
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("there is %s in it:\n%s", bad, svg)
		}
	}
	var texts []string
	in := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		switch x := token.(type) {
		case xml.StartElement:
			in = x.Name.Local == "text"
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				texts = append(texts, string(x))
			}
		}
	}
}

func TestSVG(t *testing.T) {
	svg := example().SVG()
	texts := strings.Join(wellFormed(t, svg), "|")
	for _, want := range []string{
		"Cats & dogs|lower is better|", "receives, logarithmic", "time, logarithmic", "|ours", "|<theirs>",
		"|0|", "|1|", "|10\u00a0000|", "|30\u00a0000|", "|1 µs|", "|100 µs|",
	} {
		if !strings.Contains(texts, want) {
			t.Errorf("there is no %q in %s", want, texts)
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", `class="line s0"`, `class="line o0"`, `class="fit s0" d="M`} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("there is no %s", want)
		}
	}
	if n := bytes.Count(svg, []byte(`class="whisker`)); n != 1 {
		t.Errorf("%d whiskers instead of 1", n)
	}
	// 0 is at the axis, and the last point at the other end.
	if !regexp.MustCompile(fmt.Sprintf(`class="line s0" d="M%d\.0 .*L%d\.0 `, left, width-right)).Match(svg) {
		t.Error("the line does not go from end to end")
	}
}

// TestDegenerate: whatever there is to draw, the document is sound.
func TestDegenerate(t *testing.T) {
	for name, series := range map[string][]Series{
		"nothing":         nil,
		"empty":           {{Name: "a"}},
		"one":             {{Name: "a", Points: []Point{{X: 5, Y: 5}}}},
		"zeros":           {{Name: "a", Points: []Point{{X: 0, Y: 0}, {X: 0, Y: 1}}}},
		"no numbers":      {{Name: "a", Points: []Point{{math.NaN(), 1, 0, 0}, {1, math.NaN(), 0, 0}, {1, math.Inf(1), 0, 0}, {-1, 1, 0, 0}, {1, 1, 0.5, math.Inf(1)}, {2, 1, 0.5, math.NaN()}}}},
		"more than looks": {{Look: 1000, Points: []Point{{X: 1, Y: 1}}}, {Look: 1001, Kind: Limit, Points: []Point{{X: 1, Y: 1}}}, {Look: 1002, Kind: Fine, Points: []Point{{X: 1, Y: 1}}}},
		"bad fit":         {{Name: "a", Points: []Point{{X: 0, Y: 5}, {X: 9, Y: 5}}, Fit: func(x float64) float64 { return -x }}, {Name: "b", Points: []Point{{X: 0, Y: 1}}, Fit: func(float64) float64 { return math.NaN() }}},
	} {
		for _, unit := range []Unit{Count, Microseconds, Bytes, BinaryBytes, PerSecond, Multiple} {
			t.Run(name, func(t *testing.T) {
				p := &Plot{Title: "x", X: Axis{"x", unit}, Y: Axis{"y", unit}, Series: series}
				wellFormed(t, p.SVG())
			})
		}
	}
}

// TestScale: equal ratios are equal distances.
func TestScale(t *testing.T) {
	s := scale{low: 0, high: math.Log(10000), from: 100, to: 500}
	for v, want := range map[float64]float64{1: 100, 10: 200, 100: 300, 10000: 500} {
		if got := s.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v instead of %v", v, got, want)
		}
	}
	s.zero = true
	if s.at(0) != 100 || math.Abs(s.at(1)-132) > 1e-9 || math.Abs(s.at(10000)-500) > 1e-9 {
		t.Errorf("with 0: %v, %v, %v", s.at(0), s.at(1), s.at(10000))
	}
}

func TestTicks(t *testing.T) {
	for _, x := range []struct {
		low, high float64
		unit      Unit
		want      string
	}{
		{0.4, 500, Microseconds, "1 µs,10 µs,100 µs"},
		{0.3, 24e6, Microseconds, "1 µs,10 µs,100 µs,1 ms,10 ms,100 ms,1 s,10 s"},
		{8, 30, Microseconds, "10 µs,20 µs"},
		{98e3, 2e10, Bytes, "100 kB/s,1 MB/s,10 MB/s,100 MB/s,1 GB/s,10 GB/s"},
		{4, 4 << 20, BinaryBytes, "4 B,64 B,1 KiB,16 KiB,256 KiB,4 MiB"},
		{0.3, 12, Multiple, "× 0.5,× 1,× 2,× 5,× 10"},
		{1, 30000, Count, "1,10,100,1\u00a0000,10\u00a0000,30\u00a0000"},
	} {
		s := scale{low: math.Log(x.low), high: math.Log(x.high), from: 0, to: 600}
		var labels []string
		for _, tick := range s.ticks(x.unit) {
			if tick.label != "" {
				labels = append(labels, tick.label)
			}
		}
		if got := strings.Join(labels, ","); got != x.want {
			t.Errorf("%v to %v: %s instead of %s", x.low, x.high, got, x.want)
		}
	}
}

// TestSpread: names of lines neither overlap, nor leave the plot, nor change
// their order.
func TestSpread(t *testing.T) {
	for _, ends := range [][]float64{
		{top, top, top}, {height - bottom, height - bottom, height - bottom}, {300, 100, 100, 299, 301, 100}, {200},
	} {
		var labels []label
		for _, y := range ends {
			labels = append(labels, label{from: y, y: y})
		}
		spread(labels)
		for i, l := range labels {
			if l.y < top || l.y > height-bottom {
				t.Errorf("%v: %v is outside", ends, l.y)
			}
			if i > 0 && (l.y-labels[i-1].y < labelStep-1e-9 || l.from < labels[i-1].from) {
				t.Errorf("%v: %v", ends, labels)
			}
		}
	}
}

func TestFormat(t *testing.T) {
	for _, x := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{Count, 0, "0"}, {Count, 1000000, "1\u00a0000\u00a0000"}, {Microseconds, 0.02, "20 ns"}, {Microseconds, 0.5, "500 ns"},
		{Microseconds, 1, "1 µs"}, {Microseconds, 1000, "1 ms"}, {Microseconds, 1e9, "1\u00a0000 s"},
		{PerSecond, 2e6, "2 M/s"}, {Bytes, 1e9, "1 GB/s"}, {BinaryBytes, 1 << 30, "1 GiB"}, {Bytes, 0.5, "0.5 B/s"},
	} {
		if got := x.unit.format(x.v); got != x.want {
			t.Errorf("%v: %q instead of %q", x.v, got, x.want)
		}
	}
}
