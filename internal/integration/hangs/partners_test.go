package hangs_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/cpumodel"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// call is a call of a program: it sends words to the other side, or receives them.
type call struct {
	sends, float bool
	words        int
	number       int  // number of the call, sent as the first word of its message
	ends         bool // the program ends instead
}

// calls parses a program: "s4 r1000f e" sends 4 words, receives 1000 of FLOAT, and ends. Without the e, it computes at
// the end.
func calls(program string) (list []call) {
	for i, word := range strings.Fields(program) {
		c := call{sends: word[0] == 's', float: strings.HasSuffix(word, "f"), number: i, ends: word == "e"}
		if !c.ends {
			if _, err := fmt.Sscanf(word[1:], "%d", &c.words); err != nil {
				panic(err)
			}
		}
		list = append(list, c)
	}
	return list
}

// mirror returns the program that makes the matching calls.
func mirror(program string) string {
	return strings.NewReplacer("s", "r", "r", "s").Replace(program)
}

// message returns the words that the call sends.
func (c call) message() []uint32 {
	words := make([]uint32, c.words)
	words[0] = uint32(c.number)
	return words
}

func (c call) datatype() protocol.Datatype {
	if c.float {
		return protocol.Float
	}
	return protocol.Int
}

// partner is a kind of deployed node, either real or a model.
type partner struct {
	name, kind string
	// every is the number of rows of which one is selected, because a simulation takes much processor time.
	every int
	// prepare skips the test if the node is unavailable.
	prepare func(t *testing.T)
	// start starts a node whose program exchanges messages with rank 0. peer is the address of rank 0 in the node's
	// configuration.
	start func(t *testing.T, rank int, own, peer netip.AddrPort, program string) deployedNode
}

// deployedNode is a running deployed node.
type deployedNode interface {
	// ready reports whether the node accepts packets and its program runs.
	ready() bool
	// pause suspends the node as a stop signal does. stop ends the node.
	pause()
	stop()
}

var modelMPE = partner{"model of the MPE", "fpga", 1, func(*testing.T) {}, startModelMPE}

var partners = []partner{modelMPE, {"model of the CPU library", "cpu", 1, func(*testing.T) {}, startModelCPU}}

func startModelMPE(t *testing.T, rank int, own, peer netip.AddrPort, program string) deployedNode {
	t.Helper()
	m := mpemodel.New(mpemodel.Config{Rank: rank, Peers: []int{0}})
	return startModel(t, own, peer, m, program, func() (b [][]byte) {
		for _, p := range m.TakePackets() {
			b = append(b, p.Bytes)
		}
		return b
	}, func(now time.Duration, c call) error {
		if c.sends {
			return m.Send(now, 0, c.message(), c.datatype())
		}
		return m.Recv(now, 0, uint32(c.words), c.datatype())
	})
}

func startModelCPU(t *testing.T, rank int, own, peer netip.AddrPort, program string) deployedNode {
	t.Helper()
	m := cpumodel.New(cpumodel.Config{Rank: rank, Peers: []int{0}})
	return startModel(t, own, peer, m, program, func() (b [][]byte) {
		for _, p := range m.TakePackets() {
			b = append(b, p.Bytes)
		}
		return b
	}, func(now time.Duration, c call) error {
		if c.sends {
			return m.Send(now, 0, c.message())
		}
		return m.Recv(now, 0, c.words)
	})
}

// model is the model of a deployed node.
type model interface {
	Datagram(now time.Duration, from int, b []byte)
	Tick(now time.Duration)
	NextEvent() (time.Duration, bool)
	Busy() bool
}

// modelNode is the model of a deployed node on a socket.
type modelNode struct {
	conn  *net.UDPConn
	ended chan struct{}
}

func (n *modelNode) ready() bool { return true }
func (n *modelNode) pause()      { n.stop() } // no diagnosis sees the node's process, so a pause looks like an end
func (n *modelNode) stop() {
	n.conn.Close()
	<-n.ended
}

func startModel(t *testing.T, own, peer netip.AddrPort, m model, program string, sent func() [][]byte,
	begin func(now time.Duration, c call) error) deployedNode {
	t.Helper()
	var conn *net.UDPConn
	err := retry(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(own))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := &modelNode{conn, make(chan struct{})}
	go func() {
		defer close(n.ended)
		began := time.Now()
		list := calls(program)
		b := make([]byte, 2048)
		for {
			for !m.Busy() && len(list) > 0 && !list[0].ends {
				if err := begin(time.Since(began), list[0]); err != nil {
					return // it has crashed
				}
				list = list[1:]
			}
			for _, d := range sent() {
				_, _ = conn.WriteToUDPAddrPort(d, peer) // packets that cannot be sent are lost
			}
			if !m.Busy() && len(list) > 0 {
				if list[0].ends {
					return
				}
				continue
			}
			deadline := time.Time{}
			if next, ok := m.NextEvent(); ok {
				deadline = began.Add(next)
			}
			if conn.SetReadDeadline(deadline) != nil {
				return
			}
			switch n, from, err := conn.ReadFromUDPAddrPort(b); {
			case err == nil:
				rank := 0
				if from.Addr().Unmap() != peer.Addr() { // it does not look at the port
					rank = -1
				}
				m.Datagram(time.Since(began), rank, b[:n])
			case errors.Is(err, os.ErrDeadlineExceeded):
				m.Tick(time.Since(began))
			case errors.Is(err, net.ErrClosed):
				return
			}
		}
	}()
	return n
}
