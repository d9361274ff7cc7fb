// Package web implements the daemon's HTTP server: metrics, health checks, optional profiles, and the handlers
// mounted by the daemon. TLS and passwords are implemented by the Prometheus exporter toolkit and configured in
// a web configuration file.
//
// The server is read-only. No request may change the daemon's behavior, block it or delay its shutdown:
// headers, connections and durations are limited, and open requests are ended when the server stops.
package web
