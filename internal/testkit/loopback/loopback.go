// Package loopback gives tests networks of loopback addresses that no other test uses, in this process or another, so
// that each test may use any port.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// reservePort is the UDP port bound on a network's last address while the network is in use.
const reservePort = 20999

// reserved prevents the garbage collector from closing the sockets of networks in use.
var reserved struct {
	sync.Mutex
	sockets []*net.UDPConn
}

// Network returns the first three numbers of the addresses of a network, such as "127.130.7.". The network is reserved
// until the process ends.
func Network(t testing.TB) string {
	t.Helper()
	var err error
	for range 1000 {
		network := fmt.Sprintf("127.%d.%d.", 16+rand.IntN(234), rand.IntN(250))
		var socket *net.UDPConn
		if socket, err = net.ListenUDP("udp4",
			&net.UDPAddr{IP: net.ParseIP(network + "254"), Port: reservePort}); err == nil {
			reserved.Lock()
			reserved.sockets = append(reserved.sockets, socket)
			reserved.Unlock()
			return network
		}
	}
	t.Skipf("this system does not have all of 127.0.0.0/8: %v", err)
	return ""
}
