// Package transporttest is what every mpe.Transport, and every mpe.PacketTransport,
// must do, as tests that they all run, and the helpers that tests over real sockets
// share.
package transporttest
