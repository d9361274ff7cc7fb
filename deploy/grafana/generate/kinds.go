package main

import "strconv"

// query is an expression with the legend of its series.
type query struct{ expr, legend string }

// targets are queries as a panel has them, A, B and so on.
func targets(format string, instant bool, queries []query) (ts []object) {
	for i, q := range queries {
		ts = append(ts, object{
			"datasource": prometheus, "editorMode": "code", "expr": q.expr, "format": format, "instant": instant, "range": !instant,
			"legendFormat": q.legend, "refId": string(rune('A' + i)),
		})
	}
	return ts
}

// panel is a panel of Grafana's dashboard model.
type panel object

// newPanel returns a panel without a place.
func newPanel(kind, title, unit, description string, ts []object) panel {
	return panel{
		"type": kind, "title": title, "description": description, "datasource": prometheus, "targets": ts,
		"fieldConfig": object{"defaults": object{"unit": unit}, "overrides": []object{}},
	}
}

// defaults are the options of all fields.
func (p panel) defaults() object { return p["fieldConfig"].(object)["defaults"].(object) }

// custom are those of them that the kind of panel has.
func (p panel) custom() object { return p.defaults()["custom"].(object) }

// override adds options of the field with that name.
func (p panel) override(name string, properties ...object) {
	config := p["fieldConfig"].(object)
	config["overrides"] = append(config["overrides"].([]object), object{
		"matcher": object{"id": "byName", "options": name}, "properties": properties,
	})
}

// lines shows how values change.
func lines(title, unit, description string, queries ...query) panel {
	p := newPanel("timeseries", title, unit, description, targets("time_series", false, queries))
	p.defaults()["min"] = 0
	p.defaults()["color"] = object{"mode": "palette-classic"}
	p.defaults()["custom"] = object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "never", "spanNulls": false}
	p["options"] = object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	return p
}

// logarithmic gives lines an axis on which 10 µs and 1 s can both be read.
func (p panel) logarithmic() panel {
	p.custom()["scaleDistribution"] = object{"type": "log", "log": 10}
	delete(p.defaults(), "min")
	return p
}

// stacked puts lines on top of each other.
func (p panel) stacked() panel {
	p.custom()["stacking"] = object{"mode": "normal", "group": "A"}
	p.custom()["fillOpacity"] = 25
	return p
}

// level is the lower bound of a colour.
type level struct {
	from  float64
	color string
}

// number shows one value, coloured by levels; below the first it is green.
func number(title, unit, description, expr string, levels ...level) panel {
	p := newPanel("stat", title, unit, description, targets("time_series", false, []query{{expr, ""}}))
	p["options"] = object{
		"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
		"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
	}
	p.defaults()["thresholds"] = steps("green", levels)
	p.defaults()["color"] = object{"mode": "thresholds"}
	return p
}

// once queries only the value at the end of the time range.
func (p panel) once() panel {
	for _, t := range p["targets"].([]object) {
		t["instant"], t["range"] = true, false
	}
	p["options"].(object)["graphMode"] = "none"
	return p
}

func steps(below string, levels []level) object {
	all := []object{{"color": below, "value": nil}}
	for _, l := range levels {
		all = append(all, object{"color": l.color, "value": l.from})
	}
	return object{"mode": "absolute", "steps": all}
}

// states shows what is 0 or 1 as bars of colour.
func states(title, description string, zero, one string, zeroColor string, q query) panel {
	p := newPanel("state-timeline", title, "none", description, targets("time_series", false, []query{q}))
	p["options"] = object{
		"mergeValues": true, "showValue": "auto", "rowHeight": 0.8, "alignValue": "left",
		"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": false}, "tooltip": object{"mode": "single", "sort": "none"},
	}
	p.defaults()["color"] = object{"mode": "thresholds"}
	p.defaults()["custom"] = object{"fillOpacity": 70, "lineWidth": 0, "spanNulls": false}
	p.defaults()["thresholds"] = steps(zeroColor, []level{{1, "green"}})
	p.defaults()["mappings"] = []object{{"type": "value", "options": object{
		"0": object{"text": zero, "color": zeroColor, "index": 0}, "1": object{"text": one, "color": "green", "index": 1},
	}}}
	return p
}

// heat shows how the durations of a histogram are spread.
func heat(title, description, expr string) panel {
	p := newPanel("heatmap", title, "s", description, targets("heatmap", false, []query{{expr, ""}}))
	p.defaults()["custom"] = object{"scaleDistribution": object{"type": "linear"}}
	p["options"] = object{
		"calculate": false, "cellGap": 0, "cellValues": object{"unit": "cps"},
		"color":        object{"mode": "scheme", "scheme": "Turbo", "scale": "exponential", "exponent": 0.5, "steps": 64, "fill": "dark-orange", "reverse": false},
		"filterValues": object{"le": 1e-9}, "legend": object{"show": true}, "rowsFrame": object{"layout": "auto"},
		"showValue": "never", "tooltip": object{"mode": "single", "showColorScale": false, "yHistogram": true},
		"yAxis": object{"axisPlacement": "left", "unit": "s", "reverse": false},
	}
	return p
}

// column is a label or the value of a table, in the order shown.
type column struct{ field, title string }

// value is the field that has the value of a table's query.
const value = "Value"

// table lists what there is now, with the greatest value first.
func table(title, unit, description, expr string, columns ...column) panel {
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
		p.override(c.title, object{"id": "unit", "value": "string"})
	}
	p["transformations"] = []object{
		{"id": "filterFieldsByName", "options": object{"include": object{"names": keep}}},
		{"id": "organize", "options": object{"indexByName": order, "renameByName": rename, "excludeByName": object{}}},
	}
	options := object{"cellHeight": "sm", "showHeader": true}
	p["options"] = options
	if sortBy != "" {
		options["sortBy"] = []object{{"displayName": sortBy, "desc": true}}
	}
	return p
}

// coloured paints the cells of a table's values by levels.
func (p panel) coloured(column string, levels ...level) panel {
	p.override(column, object{"id": "custom.cellOptions", "value": object{"type": "color-text"}}, object{"id": "thresholds", "value": steps("text", levels)})
	p.defaults()["color"] = object{"mode": "thresholds"}
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
	panel panel
}

const columnsOfGrid = 24

// arrange gives panels their places and numbers.
func arrange(rows []row) (placed []panel) {
	y := 0
	add := func(p panel, h, w, x int) {
		placed = append(placed, p)
		p["id"], p["gridPos"] = len(placed), object{"h": h, "w": w, "x": x, "y": y}
	}
	for _, r := range rows {
		add(panel{"type": "row", "title": r.title, "collapsed": false}, 1, columnsOfGrid, 0)
		y++
		for _, l := range r.lines {
			x := 0
			for _, p := range l.panels {
				add(p.panel, l.height, p.width, x)
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
