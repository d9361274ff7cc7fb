// Package prometheus_test checks the Prometheus configuration, rules and alerts with Prometheus itself.
package prometheus_test
