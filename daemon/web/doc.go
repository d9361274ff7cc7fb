// Package web is the daemon's HTTP server: metrics, health, profiles on request, and
// whatever else the daemon mounts. TLS and passwords are those of Prometheus' exporter
// toolkit, by a web configuration file.
//
// It only tells. Nothing that a client sends may change what the daemon does, hold it
// up, or make it stop later: headers, connections and times are bounded, and requests
// under way end with the server.
package web
