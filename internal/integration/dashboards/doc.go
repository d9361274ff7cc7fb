// Package dashboards holds the test of deploy/prometheus and deploy/grafana as a
// whole: a real Prometheus asks real daemons, sound ones and such with faults. It has no
// code of its own.
package dashboards
