package plot

import (
	"fmt"
	"strings"
)

// look is how a line can be told from the others.
type look struct{ class, shape string }

// The looks: the first half is for strong lines, the second for the others, so
// that a line looks alike in plots that have more or fewer of the other kind.
const half = 3

// colours are for light and dark pages.
var colours = [2 * half][2]string{
	{"#0b62a8", "#5ab0f2"}, {"#c94a06", "#ff8a4a"}, {"#0a7f5e", "#3ecf9f"},
	{"#a3468a", "#e08fcb"}, {"#8a6100", "#e6b84a"}, {"#5b6470", "#a9b2bd"},
}

// dashes are none for strong lines.
var dashes = [2 * half]string{"", "", "", "7 4", "2 3", "9 3 2 3"}

// shapes are paths around 0, 0.
var shapes = [2 * half]string{
	"M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", // circle
	"M-3.6 -3.6H3.6V3.6H-3.6Z",            // square
	"M0 -5L4.6 3.2H-4.6Z",                 // triangle
	"M0 -5L5 0L0 5L-5 0Z",                 // diamond
	"M0 5L4.6 -3.2H-4.6Z",                 // triangle, point down
	"M-1.4 -4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z", // cross
}

// looksOf gives each series its look.
func looksOf(series []Series) []look {
	looks := make([]look, len(series))
	var strong, other int
	for i := range series {
		n := half + other%half
		if series[i].Strong {
			n = strong % half
			strong++
		} else {
			other++
		}
		looks[i] = look{class: fmt.Sprintf("s%d", n), shape: shapes[n]}
	}
	return looks
}

// style returns the sheet. The page is painted, so that the plot is readable
// wherever it is shown.
func style() string {
	var b strings.Builder
	b.WriteString(`<style>
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; fill: #24292f }
.heading { font-size: 16px; font-weight: 600 }
.tick { fill: #57606a; font-size: 12px } .x { text-anchor: middle } .y { text-anchor: end }
.page { fill: #ffffff } .grid { stroke: #e3e7eb; fill: none } .axis { stroke: #6e7781; fill: none }
.line, .whisker, .leader { fill: none } .line { stroke-linejoin: round }
.whisker { stroke-width: 1; opacity: .6 } .leader { stroke-width: 1; opacity: .35 }
`)
	rules := func(theme int) {
		for i, c := range colours {
			fmt.Fprintf(&b, ".line.s%d, .whisker.s%d, .leader.s%d { stroke: %s } .marker.s%d, .series.s%d { fill: %s }\n",
				i, i, i, c[theme], i, i, c[theme])
		}
	}
	rules(0)
	for i, d := range dashes {
		thick := 2.6
		if i >= half {
			thick = 1.7
		}
		fmt.Fprintf(&b, ".line.s%d { stroke-width: %.1f; stroke-dasharray: %s }\n", i, thick, orNone(d))
	}
	b.WriteString("@media (prefers-color-scheme: dark) {\ntext { fill: #e6edf3 } .tick { fill: #9ea7b3 } .page { fill: #0d1117 } .grid { stroke: #262c36 } .axis { stroke: #7d8590 }\n")
	rules(1)
	b.WriteString("}\n</style>\n")
	return b.String()
}

func orNone(dash string) string {
	if dash == "" {
		return "none"
	}
	return dash
}
