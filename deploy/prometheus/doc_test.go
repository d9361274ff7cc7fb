// Package prometheus_test makes Prometheus check its configuration, rules and alerts.
package prometheus_test
