// Package loopback gives tests networks of loopback addresses that no other test has, in this process or another, so
// that each test may use the ports it likes.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// reservePort is the UDP port of a network's last address that is bound while the network is in use.
const reservePort = 20999

// held keeps the sockets of the networks in use from being closed by the garbage collector.
var held struct {
	sync.Mutex
	sockets []*net.UDPConn
}

// Network returns the first three numbers of the addresses of a network, such as "127.130.7.". It is this process's
// until the process ends.
func Network(t testing.TB) string {
	t.Helper()
	var err error
	for range 1000 {
		network := fmt.Sprintf("127.%d.%d.", 16+rand.IntN(234), rand.IntN(250))
		var socket *net.UDPConn
		if socket, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(network + "254"), Port: reservePort}); err == nil {
			held.Lock()
			held.sockets = append(held.sockets, socket)
			held.Unlock()
			return network
		}
	}
	t.Skipf("this system does not have all of 127.0.0.0/8: %v", err)
	return ""
}
