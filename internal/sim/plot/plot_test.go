package plot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/sim/plot"
)

// svg returns the document, and how many elements of each name it has.
func svg(t *testing.T, c *plot.Chart) (string, map[string]int) {
	t.Helper()
	var b strings.Builder
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), count
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

func TestChart(t *testing.T) {
	c := &plot.Chart{Title: "a < b & c", X: "ranks", Y: "µs", Lines: []plot.Line{
		{"flat", []plot.Point{{2, 1}, {4, 2}, {8, 4}}},
		{"binomial", []plot.Point{{2, 1}, {4, 10}, {8, 100}}},
		{"nothing", []plot.Point{{0, 1}, {1, 0}, {math.Inf(1), 1}, {1, math.NaN()}}},
	}}
	text, count := svg(t, c)
	if count["polyline"] != 2 || count["circle"] != 6 {
		t.Errorf("%v", count)
	}
	if !strings.Contains(text, "a &lt; b &amp; c") || strings.Contains(text, "nothing") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error(text)
	}
	if strings.Index(text, ">binomial<") > strings.Index(text, ">flat<") {
		t.Error("the legend is not in the order of the right ends")
	}
	// The second line can be seen on the first, and in the legend.
	if strings.Count(text, "stroke-dasharray") != 2 {
		t.Error(text)
	}
	// The axes are logarithmic: steps of equal ratios are equally long.
	if !strings.Contains(text, `points="80.0,430.0 375.0,235.0 670.0,40.0"`) {
		t.Error(text)
	}
}

// A chart without points, and one with a single point, are documents as well.
func TestFewPoints(t *testing.T) {
	if _, count := svg(t, &plot.Chart{Title: "none"}); count["line"] != 0 || count["text"] != 1 {
		t.Errorf("%v", count)
	}
	text, count := svg(t, &plot.Chart{Lines: []plot.Line{{"one", []plot.Point{{8, 1e-9}}}}})
	if count["circle"] != 1 || strings.Contains(text, "NaN") {
		t.Error(text)
	}
}

// An axis has ticks however far its ends are from each other.
func TestTicks(t *testing.T) {
	for _, x := range []struct {
		low, high float64
		want      string
	}{
		{0.5, 2000, "1 10 100 1000"}, {1, 20, "1 2 5 10 20"}, {1.02, 1.42, "1.1 1.2 1.3 1.4"}, {7, 9, "7 7.2 7.4 7.6 7.8 8 8.2 8.4 8.6 8.8 9"}, {3e6, 2e7, "5M 10M 20M"},
	} {
		text, _ := svg(t, &plot.Chart{Lines: []plot.Line{{"l", []plot.Point{{1, x.low}, {2, x.high}}}}})
		var got []string
		for line := range strings.Lines(text) {
			if _, rest, ok := strings.Cut(line, `text-anchor="end">`); ok {
				tick, _, _ := strings.Cut(rest, "<")
				got = append(got, tick)
			}
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("from %v to %v: %v, want %s", x.low, x.high, got, x.want)
		}
	}
}

func TestWriteError(t *testing.T) {
	if err := (&plot.Chart{Title: "x"}).WriteSVG(fullDisk{}); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
