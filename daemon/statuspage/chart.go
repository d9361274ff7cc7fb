package statuspage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// Sizes of charts and of traces, which are charts without axes, in SVG units.
const (
	chartWidth, chartHeight = 480, 72
	traceWidth, traceHeight = 78, 18
)

// chart is a line chart of rates over a time span that ends now.
type chart struct {
	// Line and Area are SVG paths, or empty for fewer than two points.
	Line, Area string
	// Max and Last are the highest and the most recent rate, as text.
	Max, Last string
	// Top and Middle are the labels of the upper and middle grid lines. Times contains the labels of the time axis.
	Top, Middle string
	Times       []string
	// Points lists the position and the value of each point, such as "432:0;437:10", so that the page can show the
	// value under the pointer. Span is the length of the time axis in seconds. End is the time at the right end of the
	// axis, in milliseconds since 1970.
	Points string
	Span   int
	End    int64
}

// axisMax returns the upper end of an axis: the smallest number that is at least highest and of the form 1, 2 or 5
// times a power of ten.
func axisMax(highest float64) float64 {
	if !(highest > 0) {
		return 1
	}
	unit := math.Pow10(int(math.Floor(math.Log10(highest))))
	for _, k := range []float64{1, 2, 5, 10} {
		if k*unit >= highest {
			return k * unit
		}
	}
	return highest
}

// axisLabels returns the labels of a time axis.
func axisLabels(span time.Duration) []string {
	labels := make([]string, 0, 5)
	for quarter := 4; quarter > 0; quarter-- {
		labels = append(labels, "−"+spanLabel(span*time.Duration(quarter)/4))
	}
	return append(labels, "now")
}

func spanLabel(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%.1f min", d.Minutes())
}

// newChart draws the points within a time span. The line is interrupted where samples are missing.
func newChart(points []point, now time.Time, span, step time.Duration) chart {
	highest := 0.0
	for _, p := range points {
		highest = max(highest, p.value)
	}
	if len(points) < 2 {
		return chart{}
	}
	top := axisMax(highest)
	c := chart{
		Max: words.Quantity(highest), Last: words.Quantity(points[len(points)-1].value), Top: words.Quantity(top),
		Middle: words.Quantity(top / 2),
		Times:  axisLabels(span), Span: int(span.Seconds()), End: now.UnixMilli(),
	}
	y := func(v float64) float64 { return chartHeight - 1 - v/top*(chartHeight-2) }
	var line, area, values strings.Builder
	var began, last float64
	var before time.Time
	end := func() {
		if !before.IsZero() {
			fmt.Fprintf(&area, "L%.0f %dL%.0f %dZ", last, chartHeight, began, chartHeight)
		}
	}
	for _, p := range points {
		x := chartWidth * (1 - now.Sub(p.at).Seconds()/span.Seconds())
		if x < 0 {
			continue
		}
		to := "L"
		if before.IsZero() || p.at.Sub(before) > 3*step {
			end()
			to, began = "M", x
		}
		fmt.Fprintf(&line, "%s%.0f %.1f", to, x, y(p.value))
		fmt.Fprintf(&area, "%s%.0f %.1f", to, x, y(p.value))
		fmt.Fprintf(&values, ";%.0f:%s", x, words.Quantity(p.value))
		last, before = x, p.at
	}
	end()
	c.Line, c.Area, c.Points = line.String(), area.String(), strings.TrimPrefix(values.String(), ";")
	return c
}

// sparkline is a small line chart without axes.
type sparkline struct {
	Line string
	// Min and Max are the lowest and highest values, as text.
	Min, Max string
}

// newTrace draws points at equal distances, scaled to the range from the lowest to the highest value.
func newTrace(points []point) sparkline {
	if len(points) < 2 {
		return sparkline{}
	}
	low, high := points[0].value, points[0].value
	for _, p := range points {
		low, high = min(low, p.value), max(high, p.value)
	}
	var b strings.Builder
	for i, p := range points {
		at := 0.5
		if high > low {
			at = (p.value - low) / (high - low)
		}
		to := "L"
		if i == 0 {
			to = "M"
		}
		fmt.Fprintf(&b, "%s%d %d", to, traceWidth-2*(len(points)-1-i), int(traceHeight-2-at*(traceHeight-4)+0.5))
	}
	return sparkline{Line: b.String(), Min: words.Latency(low), Max: words.Latency(high)}
}
