package chart

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

// textsOf parses an SVG document and returns the texts in it.
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

// TestChart checks that the document contains a title, a note, axes, ticks, and a legend entry for each series with a
// point. The entries are in the order of the right ends of the lines.
func TestChart(t *testing.T) {
	c := &Chart{
		Title: "Cats & dogs", Note: "lower is better", X: Axis{"receives", Counts}, Y: Axis{"time", Microseconds},
		Series: []Series{
			{Name: "ours", Kind: Ours, Fit: func(x float64) float64 { return 10 + x/1e5 },
				Points: []Point{{0, 10, 9, 12}, {1, 10, 0, 0}, {30000, 11, 11, 11}}},
			{Name: "nothing", Points: []Point{{0, 0, 0, 0}, {1, math.NaN(), 0, 0}}},
			{Name: "<theirs>", Kind: Peer, Points: []Point{{0, 0.4, 0, 0}, {1, 0.5, 0, 0}, {30000, 500, 0, 0}}},
		},
	}
	svg, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	texts := textsOf(t, svg)
	for _, want := range []string{"Cats & dogs", "lower is better", "receives", "time", "0", "1", "30\u00a0000",
		"1\u00a0µs", "100\u00a0µs"} {
		if !slices.Contains(texts, want) {
			t.Errorf("there is no %q in %q", want, texts)
		}
	}
	if a, b := slices.Index(texts, "<theirs>"),
		slices.Index(texts, "ours"); a < 0 || b < a || slices.Contains(texts, "nothing") {
		t.Errorf("the legend is wrong: %q", texts)
	}
	again, err := c.SVG()
	if err != nil || !bytes.Equal(again, svg) {
		t.Errorf("the same chart is drawn differently: %v", err)
	}
}

// TestChartDegenerate checks that the document is valid whatever the points are.
func TestChartDegenerate(t *testing.T) {
	for name, all := range map[string][]Series{
		"nothing": nil,
		"empty":   {{Name: "a"}},
		"one":     {{Name: "a", Points: []Point{{X: 5, Y: 5}}}},
		"zeros":   {{Name: "a", Points: []Point{{X: 0, Y: 0}, {X: 0, Y: 1}}}},
		"no numbers": {{Name: "a",
			Points: []Point{{math.NaN(), 1, 0, 0}, {1, math.NaN(), 0, 0}, {1, math.Inf(1), 0, 0}, {-1, 1, 0, 0},
				{1, 1, 0.5, math.Inf(1)}, {2, 1, 0.5, math.NaN()}}}},
		"more than variants": {{Variant: 1000, Points: []Point{{X: 1, Y: 1}}},
			{Variant: 1001, Kind: Peer, Points: []Point{{X: 1, Y: 1}}},
			{Variant: 1002, Kind: Method, Points: []Point{{X: 1, Y: 1}}}},
		"bad fit": {{Name: "a", Points: []Point{{X: 0, Y: 5}, {X: 9, Y: 5}},
			Fit: func(x float64) float64 { return -x }},
			{Name: "b", Points: []Point{{X: 0, Y: 1}}, Fit: func(float64) float64 { return math.NaN() }}},
	} {
		for _, u := range []Unit{Counts, Microseconds, BytesPerSecond, PerSecond, MessageBytes, Multiple} {
			c := &Chart{Title: "x", X: Axis{"x", u}, Y: Axis{"y", u}, Series: all}
			svg, err := c.SVG()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			textsOf(t, svg)
		}
	}
}

// TestLogScale checks that equal ratios have equal distances on the axis, and that 0 is at its start.
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
		unit      Unit
		want      string
	}{
		{0.4, 500, Microseconds, "1 µs,3 µs,10 µs,30 µs,100 µs,300 µs"},
		{0.3, 24e6, Microseconds, "1 µs,10 µs,100 µs,1 ms,10 ms,100 ms,1 s,10 s"},
		{8, 30, Microseconds, "10 µs,15 µs,20 µs,30 µs"},
		{98e3, 2e10, BytesPerSecond, "100 kB/s,1 MB/s,10 MB/s,100 MB/s,1 GB/s,10 GB/s"},
		{4, 4 << 20, MessageBytes, "4 B,64 B,1 KiB,16 KiB,256 KiB,4 MiB"},
		{4096, 4_000_000, MessageBytes, "4 KiB,16 KiB,64 KiB,256 KiB,1 MiB"},
		{0.3, 12, Multiple, "× 0.3,× 1,× 3,× 10"},
		{0.6, 2.4, Multiple, "× 0.7,× 1,× 1.5,× 2"},
		{0.97, 1.3, Multiple, "× 0.97,× 0.98,× 0.99,× 1,× 1.1,× 1.2,× 1.3"},
		{1000, 30000, PerSecond, "1 k/s,3 k/s,10 k/s,30 k/s"},
	} {
		var labels []string
		for _, tick := range (ticker{unit: x.unit, start: x.low}).Ticks(0, x.high) {
			if tick.Label != "" {
				labels = append(labels, strings.ReplaceAll(tick.Label, "\u00a0", " "))
			}
		}
		if got := strings.Join(labels, ","); got != x.want {
			t.Errorf("%v to %v: %s instead of %s", x.low, x.high, got, x.want)
		}
	}
	if got := (ticker{Counts, 1, []float64{0, 1, 30000}}).Ticks(0, 30000); len(got) != 3 ||
		got[2].Label != "30\u00a0000" {
		t.Errorf("%+v", got)
	}
}
