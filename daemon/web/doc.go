// Package web is the daemon's HTTP server: metrics, health, profiles on request, and the handlers that the
// daemon mounts. TLS and passwords are those of Prometheus' exporter toolkit, configured by a web configuration
// file.
//
// The server is read-only. No request may change the daemon's behavior, block it, or delay its end: headers,
// connections and times are limited, and open requests end with the server.
package web
