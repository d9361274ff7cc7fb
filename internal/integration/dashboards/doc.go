// Package dashboards tests deploy/prometheus and deploy/grafana as a whole: a real Prometheus scrapes real daemons,
// both healthy and faulty ones. It contains only tests.
package dashboards
