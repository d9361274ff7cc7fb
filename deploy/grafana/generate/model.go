package main

// The parts of Grafana's dashboard model that are used here, in the order in which
// Grafana itself writes them.

type dashboard struct {
	Annotations   annotations `json:"annotations"`
	Description   string      `json:"description"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"` // 1: one cursor for all panels
	Links         []link      `json:"links"`
	Panels        []*panel    `json:"panels"`
	Refresh       string      `json:"refresh"`
	SchemaVersion int         `json:"schemaVersion"`
	Tags          []string    `json:"tags"`
	Templating    templating  `json:"templating"`
	Time          timeRange   `json:"time"`
	Timezone      string      `json:"timezone"`
	Title         string      `json:"title"`
	UID           string      `json:"uid"`
}

type annotations struct {
	List []annotation `json:"list"`
}

type annotation struct {
	BuiltIn    int        `json:"builtIn,omitempty"`
	Datasource datasource `json:"datasource"`
	Enable     bool       `json:"enable"`
	Hide       bool       `json:"hide"`
	IconColor  string     `json:"iconColor"`
	Name       string     `json:"name"`
	Type       string     `json:"type,omitempty"`
}

type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	URL         string   `json:"url"`
	TargetBlank bool     `json:"targetBlank"`
	Icon        string   `json:"icon"`
	Tags        []string `json:"tags"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	AllValue    string      `json:"allValue,omitempty"`
	Current     *choice     `json:"current,omitempty"`
	Datasource  *datasource `json:"datasource,omitempty"`
	Definition  string      `json:"definition,omitempty"`
	Description string      `json:"description"`
	IncludeAll  bool        `json:"includeAll"`
	Label       string      `json:"label"`
	Multi       bool        `json:"multi"`
	Name        string      `json:"name"`
	Query       any         `json:"query"`
	Refresh     int         `json:"refresh"` // 2: when the time range changes
	Sort        int         `json:"sort"`    // 3: as numbers
	Type        string      `json:"type"`
}

type choice struct {
	Text  any `json:"text"`
	Value any `json:"value"`
}

type variableQuery struct {
	Query string `json:"query"`
	RefID string `json:"refId"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// prometheus is the data source that the variable names.
var prometheus = datasource{"prometheus", "${datasource}"}

type panel struct {
	Collapsed       *bool            `json:"collapsed,omitempty"` // of rows
	Datasource      *datasource      `json:"datasource,omitempty"`
	Description     string           `json:"description,omitempty"`
	FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
	GridPos         grid             `json:"gridPos"`
	ID              int              `json:"id"`
	Options         map[string]any   `json:"options,omitempty"`
	Targets         []target         `json:"targets,omitempty"`
	Title           string           `json:"title"`
	Transformations []transformation `json:"transformations,omitempty"`
	Type            string           `json:"type"`
}

// grid is a place in units of which a line has 24.
type grid struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  fieldDefaults `json:"defaults"`
	Overrides []override    `json:"overrides"`
}

type fieldDefaults struct {
	Color      map[string]any   `json:"color,omitempty"`
	Custom     map[string]any   `json:"custom,omitempty"`
	Mappings   []map[string]any `json:"mappings,omitempty"`
	Min        *float64         `json:"min,omitempty"`
	Thresholds *thresholds      `json:"thresholds,omitempty"`
	Unit       string           `json:"unit"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type override struct {
	Matcher    matcher    `json:"matcher"`
	Properties []property `json:"properties"`
}

type matcher struct {
	ID      string `json:"id"`
	Options any    `json:"options"`
}

type property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

type target struct {
	Datasource   datasource `json:"datasource"`
	EditorMode   string     `json:"editorMode"`
	Expr         string     `json:"expr"`
	Format       string     `json:"format"` // time_series, table or heatmap
	Instant      bool       `json:"instant"`
	LegendFormat string     `json:"legendFormat"`
	Range        bool       `json:"range"`
	RefID        string     `json:"refId"`
}

type transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
