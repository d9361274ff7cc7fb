// Package integration contains tests that span several packages: complete engines on real sockets, and foreign
// programs. It contains only tests.
package integration
