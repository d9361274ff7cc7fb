package main

import "strconv"

// query is an expression with the legend of its series.
type query struct{ expr, legend string }

// targets are queries as a panel has them, A, B and so on.
func targets(format string, instant bool, queries []query) (ts []target) {
	for i, q := range queries {
		ts = append(ts, target{
			Datasource: prometheus, EditorMode: "code", Expr: q.expr, Format: format, Instant: instant, Range: !instant,
			LegendFormat: q.legend, RefID: string(rune('A' + i)),
		})
	}
	return ts
}

// newPanel returns a panel without a place.
func newPanel(kind, title, unit, description string, ts []target) *panel {
	ds := prometheus
	return &panel{
		Type: kind, Title: title, Description: description, Datasource: &ds, Targets: ts, Options: map[string]any{},
		FieldConfig: &fieldConfig{Defaults: fieldDefaults{Unit: unit}, Overrides: []override{}},
	}
}

// lines shows how values change.
func lines(title, unit, description string, queries ...query) *panel {
	p := newPanel("timeseries", title, unit, description, targets("time_series", false, queries))
	zero := 0.0
	p.FieldConfig.Defaults.Min = &zero
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "palette-classic"}
	p.FieldConfig.Defaults.Custom = map[string]any{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": false}
	p.Options = map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}
	return p
}

// logarithmic gives lines an axis on which 10 µs and 1 s can both be read.
func (p *panel) logarithmic() *panel {
	p.FieldConfig.Defaults.Custom["scaleDistribution"] = map[string]any{"type": "log", "log": 10}
	p.FieldConfig.Defaults.Min = nil
	return p
}

// stacked puts lines on top of each other.
func (p *panel) stacked() *panel {
	p.FieldConfig.Defaults.Custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
	p.FieldConfig.Defaults.Custom["fillOpacity"] = 25
	return p
}

// level is the lower bound of a colour.
type level struct {
	from  float64
	color string
}

// number shows one value, coloured by levels; below the first it is green.
func number(title, unit, description, expr string, levels ...level) *panel {
	p := newPanel("stat", title, unit, description, targets("time_series", false, []query{{expr, ""}}))
	p.Options = map[string]any{
		"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
	p.FieldConfig.Defaults.Thresholds = steps("green", levels)
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	return p
}

// once queries only the value at the end of the time range.
func (p *panel) once() *panel {
	for i := range p.Targets {
		p.Targets[i].Instant, p.Targets[i].Range = true, false
	}
	p.Options["graphMode"] = "none"
	return p
}

func steps(below string, levels []level) *thresholds {
	t := &thresholds{Mode: "absolute", Steps: []step{{Color: below}}}
	for _, l := range levels {
		t.Steps = append(t.Steps, step{l.color, &l.from})
	}
	return t
}

// states shows what is 0 or 1 as bars of colour.
func states(title, description string, zero, one string, zeroColor string, q query) *panel {
	p := newPanel("state-timeline", title, "none", description, targets("time_series", false, []query{q}))
	p.Options = map[string]any{
		"mergeValues": true, "showValue": "auto", "rowHeight": 0.8, "alignValue": "left",
		"legend": map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": false}, "tooltip": map[string]any{"mode": "single", "sort": "none"},
	}
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	p.FieldConfig.Defaults.Custom = map[string]any{"fillOpacity": 70, "lineWidth": 0, "spanNulls": false}
	p.FieldConfig.Defaults.Thresholds = steps(zeroColor, []level{{1, "green"}})
	p.FieldConfig.Defaults.Mappings = []map[string]any{{"type": "value", "options": map[string]any{
		"0": map[string]any{"text": zero, "color": zeroColor, "index": 0}, "1": map[string]any{"text": one, "color": "green", "index": 1},
	}}}
	return p
}

// heat shows how the durations of a histogram are spread.
func heat(title, description, expr string) *panel {
	p := newPanel("heatmap", title, "s", description, targets("heatmap", false, []query{{expr, ""}}))
	p.FieldConfig.Defaults.Custom = map[string]any{"scaleDistribution": map[string]any{"type": "linear"}}
	p.Options = map[string]any{
		"calculate": false, "cellGap": 0, "cellValues": map[string]any{"unit": "cps"},
		"color":        map[string]any{"mode": "scheme", "scheme": "Turbo", "scale": "exponential", "exponent": 0.5, "steps": 64, "fill": "dark-orange", "reverse": false},
		"filterValues": map[string]any{"le": 1e-9}, "legend": map[string]any{"show": true}, "rowsFrame": map[string]any{"layout": "auto"},
		"showValue": "never", "tooltip": map[string]any{"mode": "single", "showColorScale": false, "yHistogram": true},
		"yAxis": map[string]any{"axisPlacement": "left", "unit": "s", "reverse": false},
	}
	return p
}

// column is a label or the value of a table, in the order shown.
type column struct{ field, title string }

// value is the field that has the value of a table's query.
const value = "Value"

// table lists what there is now, with the greatest value first.
func table(title, unit, description, expr string, columns ...column) *panel {
	p := newPanel("table", title, unit, description, targets("table", true, []query{{expr, ""}}))
	rename, order, keep := map[string]string{}, map[string]int{}, make([]string, 0, len(columns))
	sortBy := ""
	for i, c := range columns {
		order[c.field], rename[c.field] = i, c.title
		keep = append(keep, c.field)
		if c.field == value {
			sortBy = c.title
			continue
		}
		// Labels are strings, even if they consist of digits.
		p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{matcher{"byName", c.title}, []property{{"unit", "string"}}})
	}
	p.Transformations = []transformation{
		{"filterFieldsByName", map[string]any{"include": map[string]any{"names": keep}}},
		{"organize", map[string]any{"indexByName": order, "renameByName": rename, "excludeByName": map[string]any{}}},
	}
	p.Options = map[string]any{"cellHeight": "sm", "showHeader": true}
	if sortBy != "" {
		p.Options["sortBy"] = []map[string]any{{"displayName": sortBy, "desc": true}}
	}
	return p
}

// coloured paints the cells of a table's values by levels.
func (p *panel) coloured(column string, levels ...level) *panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, override{matcher{"byName", column}, []property{
		{"custom.cellOptions", map[string]any{"type": "color-text"}}, {"thresholds", steps("text", levels)},
	}})
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	return p
}

// row is a section of the dashboard, of lines of panels.
type row struct {
	title string
	lines []line
}

// line is panels of the same height side by side; their widths add up to 24.
type line struct {
	height int
	panels []sized
}

type sized struct {
	width int
	*panel
}

const columnsOfGrid = 24

// arrange gives panels their places and numbers.
func arrange(rows []row) (placed []*panel) {
	y, id := 0, 0
	add := func(p *panel, g grid) {
		id++
		p.ID, p.GridPos = id, g
		placed = append(placed, p)
	}
	open := false
	for _, r := range rows {
		add(&panel{Type: "row", Title: r.title, Collapsed: &open}, grid{1, columnsOfGrid, 0, y})
		y++
		for _, l := range r.lines {
			x := 0
			for _, p := range l.panels {
				add(p.panel, grid{l.height, p.width, x, y})
				x += p.width
			}
			if x != columnsOfGrid {
				panic("a line of " + r.title + " is " + strconv.Itoa(x) + " wide")
			}
			y += l.height
		}
	}
	return placed
}
