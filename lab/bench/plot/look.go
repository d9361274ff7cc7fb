package plot

import (
	"fmt"
	"strings"
)

// Kind says what a line is among others, and so how it looks.
type Kind uint8

const (
	// Other is what a strong line is compared with: thin and dashed.
	Other Kind = iota
	// Strong lines are thick and whole.
	Strong
	// Limit is what lines cannot pass: grey and dotted.
	Limit
	// Fine lines are whole and thin: forms of a strong one.
	Fine
)

// look is how a line can be told from the others.
type look struct{ class, shape string }

// kinds are all, those on top last.
var kinds = []Kind{Limit, Other, Fine, Strong}

// style is the looks of a kind.
type style struct {
	class string
	// colours are for light and dark pages.
	colours [][2]string
	dashes  []string
	width   float64
}

var styles = map[Kind]style{
	Strong: {
		class: "s", width: 2.6, dashes: []string{"none"},
		colours: [][2]string{{"#0b62a8", "#5ab0f2"}, {"#6a4fb3", "#b3a0f0"}, {"#c94a06", "#ff8a4a"}, {"#0a7f5e", "#3ecf9f"}, {"#b0215b", "#ff7fae"}},
	},
	Fine: {
		class: "f", width: 1.5, dashes: []string{"none"},
		colours: [][2]string{
			{"#6a4fb3", "#b3a0f0"}, {"#0a7f5e", "#3ecf9f"}, {"#57606a", "#a9b2bd"}, {"#b0215b", "#ff7fae"},
			{"#0b62a8", "#5ab0f2"}, {"#007c9b", "#5fd4ee"}, {"#7a3b22", "#d99a7a"},
		},
	},
	Other: {
		class: "o", width: 1.7, dashes: []string{"7 4", "2 3", "9 3 2 3", "12 4"},
		colours: [][2]string{{"#8a6100", "#e6b84a"}, {"#a3468a", "#e08fcb"}, {"#3d6b1f", "#9ccf6d"}, {"#7a3b22", "#d99a7a"}},
	},
	Limit: {
		class: "l", width: 1.7, dashes: []string{"1 3", "4 3", "1 3 4 3"},
		colours: [][2]string{{"#57606a", "#a9b2bd"}, {"#57606a", "#a9b2bd"}, {"#57606a", "#a9b2bd"}},
	},
}

// shapes are paths around 0, 0.
var shapes = []string{
	"M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", // circle
	"M-3.6 -3.6H3.6V3.6H-3.6Z",            // square
	"M0 -5L4.6 3.2H-4.6Z",                 // triangle
	"M0 -5L5 0L0 5L-5 0Z",                 // diamond
	"M0 5L4.6 -3.2H-4.6Z",                 // triangle, point down
	"M-1.4 -4.4H1.4V-1.4H4.4V1.4H1.4V4.4H-1.4V1.4H-4.4V-1.4H-1.4Z", // cross
}

// firstShapes is which shape the first look of a kind has: those of the others
// begin elsewhere.
var firstShapes = map[Kind]int{Strong: 0, Other: 3, Limit: 5, Fine: 1}

// lookOf gives a series its look.
func lookOf(s *Series) look {
	st := styles[s.Kind]
	return look{
		class: fmt.Sprintf("%s%d", st.class, s.Look%len(st.colours)),
		shape: shapes[(firstShapes[s.Kind]+s.Look)%len(shapes)],
	}
}

// sheet returns the style sheet. The page is painted, so that the plot is readable
// wherever it is shown.
func sheet() string {
	var b strings.Builder
	b.WriteString(`<style>
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; fill: #24292f }
.heading { font-size: 16px; font-weight: 600 }
.tick { fill: #57606a; font-size: 12px } .x { text-anchor: middle } .y { text-anchor: end }
.page { fill: #ffffff } .grid { stroke: #e3e7eb; fill: none } .axis { stroke: #6e7781; fill: none }
.line, .fit, .whisker, .leader { fill: none } .line { stroke-linejoin: round }
.fit { stroke-width: 1; opacity: .75 } .whisker { stroke-width: 1; opacity: .6 } .leader { stroke-width: 1; opacity: .35 }
`)
	rules := func(theme int) {
		for _, kind := range kinds {
			st := styles[kind]
			for i, c := range st.colours {
				fmt.Fprintf(&b, ".line.%[1]s, .fit.%[1]s, .whisker.%[1]s, .leader.%[1]s { stroke: %[2]s } .marker.%[1]s, .series.%[1]s { fill: %[2]s }\n",
					fmt.Sprintf("%s%d", st.class, i), c[theme])
			}
		}
	}
	rules(0)
	for _, kind := range kinds {
		st := styles[kind]
		for i := range st.colours {
			fmt.Fprintf(&b, ".line.%s%d { stroke-width: %.1f; stroke-dasharray: %s }\n", st.class, i, st.width, st.dashes[i%len(st.dashes)])
		}
	}
	b.WriteString("@media (prefers-color-scheme: dark) {\ntext { fill: #e6edf3 } .tick { fill: #9ea7b3 } .page { fill: #0d1117 } .grid { stroke: #262c36 } .axis { stroke: #7d8590 }\n")
	rules(1)
	b.WriteString("}\n</style>\n")
	return b.String()
}
