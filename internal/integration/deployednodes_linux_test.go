package integration_test

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// deployedNode is a deployed node as rank 1. Its program makes calls that match the calls of rank 0.
type deployedNode interface {
	// finished returns the number of calls that have returned, and whether a received message was wrong.
	finished() (n int, wrong bool)
	stop()
}

// nodeCall is a call of a node that sends words to rank 0, or expects to receive them.
type nodeCall struct {
	send  bool
	words []uint32
}

// nodeFPGA is a deployed node: the model of the FPGA on a socket.
type nodeFPGA struct {
	conn  *net.UDPConn
	ended chan struct{}

	mu    sync.Mutex
	n     int
	wrong bool
}

func newNodeFPGA(t *testing.T, from int, program []nodeCall, own, peer string) *nodeFPGA {
	t.Helper()
	at := func(ip string) *net.UDPAddr { return &net.UDPAddr{IP: net.ParseIP(ip), Port: protocol.Port} }
	var conn *net.UDPConn
	var err error
	if !eventually(func() bool { // another test may be using the address
		conn, err = net.DialUDP("udp4", at(own), at(peer))
		return err == nil
	}) {
		t.Fatal(err)
	}
	f := &nodeFPGA{conn: conn, ended: make(chan struct{}), n: from}
	go f.run(t, program)
	return f
}

func (f *nodeFPGA) stop() {
	f.conn.Close()
	<-f.ended
}

func (f *nodeFPGA) finished() (n int, wrong bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n, f.wrong
}

func (f *nodeFPGA) run(t *testing.T, program []nodeCall) {
	defer close(f.ended)
	m := mpemodel.New(mpemodel.Config{Rank: 1, Peers: []int{0}})
	began := time.Now()
	b := make([]byte, 2048)
	for calls := 0; ; {
		for !m.Busy() {
			if calls > 0 {
				words, _, _ := m.Result()
				f.mu.Lock()
				f.n++
				f.wrong = f.wrong || !program[calls-1].send && !slices.Equal(words, program[calls-1].words)
				f.mu.Unlock()
			}
			if calls == len(program) {
				return
			}
			var err error
			if c := program[calls]; c.send {
				err = m.Send(time.Since(began), 0, c.words, protocol.Int)
			} else {
				err = m.Recv(time.Since(began), 0, uint32(len(c.words)), protocol.Int)
			}
			if err != nil {
				t.Error(err)
				return
			}
			calls++
		}
		for _, p := range m.TakePackets() {
			_, _ = f.conn.Write(p.Bytes) // packets that cannot be sent are lost
		}
		deadline := time.Time{}
		if next, ok := m.NextEvent(); ok {
			deadline = began.Add(next)
		}
		if f.conn.SetReadDeadline(deadline) != nil {
			return
		}
		switch n, err := f.conn.Read(b); {
		case err == nil:
			m.Datagram(time.Since(began), 0, b[:n])
		case errors.Is(err, os.ErrDeadlineExceeded):
			m.Tick(time.Since(began))
		case errors.Is(err, net.ErrClosed):
			return
		}
		for _, p := range m.TakePackets() {
			_, _ = f.conn.Write(p.Bytes)
		}
	}
}

// nodeCPU is a program on upstream's library.
type nodeCPU struct {
	*callsProgram
	ended chan struct{}
	mu    sync.Mutex
	n     int
	wrong bool
}

// newNodeCPU starts the program built by buildCalls.
func newNodeCPU(t *testing.T, calls string, from int, program []nodeCall, own, peer string) *nodeCPU {
	t.Helper()
	p := &nodeCPU{ended: make(chan struct{}), callsProgram: startCalls(t, calls, 1, []string{peer, own})}
	p.n = from
	for _, c := range program {
		if c.send {
			p.send(0, c.words)
		} else {
			p.recv(0, len(c.words))
		}
	}
	go func() {
		defer close(p.ended)
		for line := range p.returned {
			p.mu.Lock()
			c := program[p.n-from]
			p.wrong = p.wrong || !c.send && line != receivedLine(c.words)
			p.n++
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *nodeCPU) finished() (n int, wrong bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.wrong
}

func (p *nodeCPU) stop() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}
