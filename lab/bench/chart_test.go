package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// textsOf reads an SVG document, and returns the texts in it.
func textsOf(t *testing.T, svg []byte) []string {
	t.Helper()
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("the document has %s:\n%s", bad, svg)
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

// TestChart: the document has title, note, axes, ticks and a name for each series that has
// a point, in the order of the lines at their right ends.
func TestChart(t *testing.T) {
	c := &chart{
		title: "Cats & dogs", note: "lower is better", x: axis{"receives", counts}, y: axis{"time", microseconds},
		series: []series{
			{name: "ours", kind: ourLine, fit: func(x float64) float64 { return 10 + x/1e5 }, points: []dot{{0, 10, 9, 12}, {1, 10, 0, 0}, {30000, 11, 11, 11}}},
			{name: "nothing", points: []dot{{0, 0, 0, 0}, {1, math.NaN(), 0, 0}}},
			{name: "<theirs>", kind: peerLine, points: []dot{{0, 0.4, 0, 0}, {1, 0.5, 0, 0}, {30000, 500, 0, 0}}},
		},
	}
	svg, err := c.svg()
	if err != nil {
		t.Fatal(err)
	}
	texts := textsOf(t, svg)
	for _, want := range []string{"Cats & dogs", "lower is better", "receives", "time", "0", "1", "30\u00a0000", "1\u00a0µs", "100\u00a0µs"} {
		if !slices.Contains(texts, want) {
			t.Errorf("there is no %q in %q", want, texts)
		}
	}
	if a, b := slices.Index(texts, "<theirs>"), slices.Index(texts, "ours"); a < 0 || b < a || slices.Contains(texts, "nothing") {
		t.Errorf("the legend is wrong: %q", texts)
	}
	again, err := c.svg()
	if err != nil || !bytes.Equal(again, svg) {
		t.Errorf("the same chart is drawn differently: %v", err)
	}
}

// TestChartDegenerate: the document is sound whatever the points are.
func TestChartDegenerate(t *testing.T) {
	for name, all := range map[string][]series{
		"nothing":            nil,
		"empty":              {{name: "a"}},
		"one":                {{name: "a", points: []dot{{x: 5, y: 5}}}},
		"zeros":              {{name: "a", points: []dot{{x: 0, y: 0}, {x: 0, y: 1}}}},
		"no numbers":         {{name: "a", points: []dot{{math.NaN(), 1, 0, 0}, {1, math.NaN(), 0, 0}, {1, math.Inf(1), 0, 0}, {-1, 1, 0, 0}, {1, 1, 0.5, math.Inf(1)}, {2, 1, 0.5, math.NaN()}}}},
		"more than variants": {{variant: 1000, points: []dot{{x: 1, y: 1}}}, {variant: 1001, kind: peerLine, points: []dot{{x: 1, y: 1}}}, {variant: 1002, kind: methodLine, points: []dot{{x: 1, y: 1}}}},
		"bad fit":            {{name: "a", points: []dot{{x: 0, y: 5}, {x: 9, y: 5}}, fit: func(x float64) float64 { return -x }}, {name: "b", points: []dot{{x: 0, y: 1}}, fit: func(float64) float64 { return math.NaN() }}},
	} {
		for _, u := range []unit{counts, microseconds, bytesPerSecond, perSecond, messageBytes, multiple} {
			c := &chart{title: "x", x: axis{"x", u}, y: axis{"y", u}, series: all}
			svg, err := c.svg()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			textsOf(t, svg)
		}
	}
}

// TestLogScale: equal ratios are equal distances, and 0 is at the beginning.
func TestLogScale(t *testing.T) {
	for _, x := range []struct {
		values []float64
		want   map[float64]float64
	}{
		{[]float64{1, 10000}, map[float64]float64{1: 0, 10: 0.25, 100: 0.5, 10000: 1}},
		{[]float64{0, 1, 10000}, map[float64]float64{0: 0, 1: zeroShare, 100: (1 + zeroShare) / 2, 10000: 1}},
	} {
		s := newLogScale(x.values, 1)
		for v, want := range x.want {
			if got := s.Normalize(s.low, s.high, v); math.Abs(got-want) > 1e-9 {
				t.Errorf("%v: %v is at %v instead of %v", x.values, v, got, want)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, x := range []struct {
		low, high float64
		unit      unit
		want      string
	}{
		{0.4, 500, microseconds, "1 µs,3 µs,10 µs,30 µs,100 µs,300 µs"},
		{0.3, 24e6, microseconds, "1 µs,10 µs,100 µs,1 ms,10 ms,100 ms,1 s,10 s"},
		{8, 30, microseconds, "10 µs,15 µs,20 µs,30 µs"},
		{98e3, 2e10, bytesPerSecond, "100 kB/s,1 MB/s,10 MB/s,100 MB/s,1 GB/s,10 GB/s"},
		{4, 4 << 20, messageBytes, "4 B,64 B,1 KiB,16 KiB,256 KiB,4 MiB"},
		{4096, 4_000_000, messageBytes, "4 KiB,16 KiB,64 KiB,256 KiB,1 MiB"},
		{0.3, 12, multiple, "× 0.3,× 1,× 3,× 10"},
		{0.6, 2.4, multiple, "× 0.7,× 1,× 1.5,× 2"},
		{0.97, 1.3, multiple, "× 0.97,× 0.98,× 0.99,× 1,× 1.1,× 1.2,× 1.3"},
		{1000, 30000, perSecond, "1 k/s,3 k/s,10 k/s,30 k/s"},
	} {
		var labels []string
		for _, tick := range (ticker{unit: x.unit, least: x.low}).Ticks(0, x.high) {
			if tick.Label != "" {
				labels = append(labels, strings.ReplaceAll(tick.Label, "\u00a0", " "))
			}
		}
		if got := strings.Join(labels, ","); got != x.want {
			t.Errorf("%v to %v: %s instead of %s", x.low, x.high, got, x.want)
		}
	}
	if got := (ticker{counts, 1, []float64{0, 1, 30000}}).Ticks(0, 30000); len(got) != 3 || got[2].Label != "30\u00a0000" {
		t.Errorf("%+v", got)
	}
}

// Each of our sides has a colour of its own.
func TestColours(t *testing.T) {
	for key, v := range variants {
		if n := len(lineStyles[ourLine].colours); v >= n {
			t.Errorf("%s is number %d, and there are %d colours", key, v, n)
		}
	}
}
