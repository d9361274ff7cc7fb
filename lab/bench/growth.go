package bench

// Growth describes how a measured figure grows with n from step to step of a workload. It holds the straight line that
// minimizes the squared relative deviations from the medians of the steps.
type Growth struct {
	Workload string `json:"workload"`
	Side     string `json:"side"`
	// Figure is the name of the figure: p50 or unload.
	Figure string `json:"figure"`
	// Intercept is the fixed cost of a message in µs, and Slope the cost per byte, rank or posted receive in ns.
	Intercept float64 `json:"intercept_us"`
	Slope     float64 `json:"slope_ns"`
	// Deviation is the root mean square of the points' relative deviations from the line.
	Deviation float64 `json:"deviation"`
}

// growthFigure selects a figure of a workload. Lines are fitted to its values at all steps.
type growthFigure struct {
	workload, figure string
	// title is the heading of the table. per is the unit of the steps: the line's slope is the cost per such unit.
	title, per string
}

var growths = []growthFigure{
	{"pingpong", "p50", "Half round trip against the length", "byte"},
	{"rate", "p50", "Time of a message against its length, 64 in flight", "byte"},
	{"stream", "p50", "Time of a message against its length, 4 in flight", "byte"},
	{"ring", "p50", "Time of a hop against the number of ranks", "rank"},
	{"queues", "p50", "Half round trip against the number of posted receives", "receive"},
	{"queues", "unload", "Time to unload against the number of posted receives", "receive"},
}

// growth fits lines to all results.
func (r *Report) growth() []Growth {
	var all []Growth
	for _, figure := range growths {
		res := r.result(figure.workload)
		if res == nil {
			continue
		}
		for i := range res.Sides {
			s := &res.Sides[i]
			x, y := s.series(figure.figure)
			if f, ok := fitLine(x, y); ok {
				all = append(all, Growth{
					Workload: figure.workload, Side: s.Key, Figure: figure.figure,
					Intercept: f.intercept, Slope: f.slope * 1e3, Deviation: f.deviation,
				})
			}
		}
	}
	return all
}

// series returns a figure at all steps. It omits unload times of steps without posted receives, as there is nothing to
// unload.
func (m *Measured) series(figure string) (x, y []float64) {
	for i := range m.Median {
		p := &m.Median[i]
		if figure == "unload" && p.N == 0 {
			continue
		}
		x, y = append(x, float64(p.N)), append(y, *p.figure(figure))
	}
	return x, y
}

// findGrowth returns the line fitted to the given figure of a side, or nil if no line was fitted.
func (r *Report) findGrowth(workload, side, figure string) *Growth {
	for i := range r.Growth {
		if g := &r.Growth[i]; g.Workload == workload && g.Side == side && g.Figure == figure {
			return g
		}
	}
	return nil
}

// valueAt returns the value of the line at n.
func (g *Growth) valueAt(n float64) float64 { return g.Intercept + g.Slope/1e3*n }
