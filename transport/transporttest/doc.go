// Package transporttest is what every mpe.Transport must do, as tests that they all run, and the helpers that tests over real sockets
// share.
package transporttest
