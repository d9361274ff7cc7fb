package bench

// Growth is what a figure of a side grows by: a straight line through the medians
// of a workload's steps, fitted by least squares of relative deviations.
type Growth struct {
	Workload string `json:"workload"`
	Side     string `json:"side"`
	// Figure is the point's figure, p50 or unload.
	Figure string `json:"figure"`
	// Intercept is what a message costs by itself, in µs, and Slope what each
	// byte, rank or posted receive adds, in ns.
	Intercept float64 `json:"intercept_us"`
	Slope     float64 `json:"slope_ns"`
	// Deviation is how far the points are from the line: the root mean square,
	// as a part of them.
	Deviation float64 `json:"deviation"`
}

// grows says what is fitted for a workload.
type grows struct {
	workload, figure string
	// title is of the table; per is what the slope is for.
	title, per string
}

var growths = []grows{
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
	for _, g := range growths {
		res := r.result(g.workload)
		if res == nil {
			continue
		}
		for i := range res.Sides {
			s := &res.Sides[i]
			x, y := s.series(g.figure)
			if f, ok := fitLine(x, y); ok {
				all = append(all, Growth{
					Workload: g.workload, Side: s.Key, Figure: g.figure,
					Intercept: f.intercept, Slope: f.slope * 1e3, Deviation: f.deviation,
				})
			}
		}
	}
	return all
}

// series returns a figure against the steps; where nothing is unloaded there is no
// time to do so.
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

// grown returns the line of a side, or nil.
func (r *Report) grown(workload, side, figure string) *Growth {
	for i := range r.Growth {
		if g := &r.Growth[i]; g.Workload == workload && g.Side == side && g.Figure == figure {
			return g
		}
	}
	return nil
}

// at is where the line is.
func (g *Growth) at(n float64) float64 { return g.Intercept + g.Slope/1e3*n }
