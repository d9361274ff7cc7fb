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

// object is an object of Grafana's dashboard model.
type object = map[string]any

// prometheus is the data source that the variable names.
var prometheus = object{"type": "prometheus", "uid": "${datasource}"}

// zrlmpid is the dashboard.
func zrlmpid() object {
	return object{
		"title": "zrlmpid", "uid": "zrlmpid", "tags": []string{"zrlmpi", "mpi", "cloudfpga"}, "schemaVersion": 41, "editable": true,
		"description": "ZRLMPI Message Passing Engines: waiting ranks, duration of handshakes, losses of the network.",
		"refresh":     "10s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"graphTooltip": 1, // one cursor for all panels
		"annotations": object{"list": []object{{
			"builtIn": 1, "datasource": object{"type": "grafana", "uid": "-- Grafana --"}, "enable": true, "hide": true,
			"iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard",
		}}},
		"links": []object{{
			"title": "Panels and alerts explained", "type": "link", "targetBlank": true, "icon": "doc", "tags": []string{},
			"url": "https://github.com/zrlmpi/zrlmpid/blob/main/docs/operations.md",
		}},
		"templating": object{"list": variables()},
		"panels":     arrange(rows()),
	}
}

// all selects all values.
var all = object{"text": []string{"All"}, "value": []string{"$__all"}}

// variables are the filters of the dashboard. Each accepts several values.
func variables() []object {
	variable := func(kind, name, label, description string, query any) object {
		return object{
			"name": name, "label": label, "description": description, "type": kind, "query": query, "includeAll": false, "multi": false,
			"refresh": 1, "sort": 0,
		}
	}
	chosen := func(name, label, description, query string) object {
		v := variable("query", name, label, description, object{"query": query, "refId": "StandardVariableQuery"})
		v["datasource"], v["definition"], v["multi"], v["includeAll"], v["allValue"], v["current"] = prometheus, query, true, true, ".*", all
		v["refresh"] = 2 // when the time range changes
		v["sort"] = 3    // as numbers
		return v
	}
	return []object{
		variable("datasource", "datasource", "Data source", "The Prometheus data source", "prometheus"),
		chosen("instance", "Daemon", "The zrlmpid, by its HTTP address", `label_values(up{job="zrlmpid"}, instance)`),
		chosen("rank", "Rank", "The local rank", `label_values(zrlmpi_attached_programs{instance=~"$instance"}, rank)`),
		chosen("peer", "Peer", "The remote rank", `label_values(zrlmpi_messages_total{instance=~"$instance", rank=~"$rank"}, peer)`),
	}
}
