// Package prometheus_test has Prometheus check its configuration, rules and alerts.
package prometheus_test
