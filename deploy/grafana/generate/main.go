// Command generate prints the Grafana dashboard of zrlmpid: queries and their
// descriptions are in rows.go, and the places of panels follow from their order. It
// reads and contacts nothing.
//
//	go run ./deploy/grafana/generate > deploy/grafana/zrlmpid.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(zrlmpid()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// zrlmpid is the dashboard.
func zrlmpid() *dashboard {
	return &dashboard{
		Title: "zrlmpid", UID: "zrlmpid", Tags: []string{"zrlmpi", "mpi", "cloudfpga"}, SchemaVersion: 41, Editable: true,
		Description: "ZRLMPI Message Passing Engines: waiting ranks, duration of handshakes, losses of the network.",
		Refresh:     "10s", Time: timeRange{"now-1h", "now"}, Timezone: "browser", GraphTooltip: 1,
		Annotations: annotations{[]annotation{{
			BuiltIn: 1, Datasource: datasource{"grafana", "-- Grafana --"}, Enable: true, Hide: true,
			IconColor: "rgba(0, 211, 255, 1)", Name: "Annotations & Alerts", Type: "dashboard",
		}}},
		Links: []link{{
			Title: "Panels and alerts explained", Type: "link", TargetBlank: true, Icon: "doc", Tags: []string{},
			URL: "https://github.com/zrlmpi/zrlmpid/blob/main/docs/operations.md",
		}},
		Templating: templating{variables()},
		Panels:     arrange(rows()),
	}
}

// all selects all values.
var all = &choice{[]string{"All"}, []string{"$__all"}}

// variables are the filters of the dashboard. Each accepts several values.
func variables() []variable {
	chosen := func(name, label, description, query string) variable {
		ds := prometheus
		return variable{
			Name: name, Label: label, Description: description, Type: "query", Datasource: &ds, Definition: query,
			Query: variableQuery{query, "StandardVariableQuery"}, Refresh: 2, Sort: 3, Multi: true, IncludeAll: true, AllValue: ".*", Current: all,
		}
	}
	return []variable{
		{Name: "datasource", Label: "Data source", Description: "The Prometheus data source", Type: "datasource", Query: "prometheus", Refresh: 1},
		chosen("instance", "Daemon", "The zrlmpid, by its HTTP address", `label_values(up{job="zrlmpid"}, instance)`),
		chosen("rank", "Rank", "The local rank", `label_values(zrlmpi_attached_programs{instance=~"$instance"}, rank)`),
		chosen("peer", "Peer", "The remote rank", `label_values(zrlmpi_messages_total{instance=~"$instance", rank=~"$rank"}, peer)`),
	}
}
