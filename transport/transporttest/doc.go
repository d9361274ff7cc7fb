// Package transporttest contains the tests that every mpe.Transport must pass, and helpers for tests over real
// sockets.
package transporttest
