package integration_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/udp"
)

// crowd is rank 0, a single engine with one socket, and its many peers, all in this process: stand-ins with an FPGA's
// quirks from rank 1 on, followed by ranks of the extended profile. All peers echo.
type crowd struct {
	engine        *mpe.Engine
	conn          *udp.Conn
	fpgas, others int
	far           *farEnds
	// before is the number of goroutines before the engine was created, and goroutines the number of goroutines that
	// the engine added.
	before, goroutines int

	standins []*mpe.Engine
	stop     context.CancelFunc
	kernels  sync.WaitGroup
}

// farWindow is the number of packets that each rank of the extended profile may have in flight to rank 0. The bursts of
// a thousand such ranks then fit into the socket of rank 0. Packets of FPGAs, which share the socket, must not be
// dropped, because an FPGA retransmits only after a long time.
const farWindow = 8

// newCrowd starts a crowd on the addresses 127.n.0.0 to 127.n.255.255.
func newCrowd(t testing.TB, n byte, fpgas, others int) *crowd {
	t.Helper()
	c := &crowd{fpgas: fpgas, others: others}
	far, addrs := newFarEnds(t, n, 1+fpgas, others,
		extended.Config{Window: farWindow, Messages: 64, EagerBytes: 64 << 10, Timing: patientExtended()})
	c.far = far
	// Another process running the same test uses other addresses, so it cannot take one of the free ports.
	own := byte(128 + os.Getpid()%128)
	entries := make([]rankmap.Entry, 1+fpgas+others)
	for rank := range entries {
		entries[rank] = rankmap.Entry{Rank: rank, Kind: rankmap.Software}
		switch {
		case rank > fpgas:
			entries[rank].Addr = addrs[rank-fpgas-1]
			continue
		case rank > 0:
			entries[rank].Kind = rankmap.FPGA
		}
		entries[rank].Addr = freePort(t, netip.AddrFrom4([4]byte{127, n, own, byte(1 + rank)}))
	}
	c.startStandIns(t, entries[:1+fpgas])

	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	if c.conn, err = udp.Listen(udp.Config{Rank: 0, Map: m}); err != nil {
		t.Fatal(err)
	}
	cfg := mpe.Config{Rank: 0, Peers: make([]mpe.Peer, len(entries))}
	for rank := range cfg.Peers {
		cfg.Peers[rank] = hostPeer(rank, rank <= fpgas)
		cfg.Peers[rank].Transport = c.conn
	}
	c.before = runtime.NumGoroutine()
	if c.engine, err = mpe.New(cfg); err != nil {
		t.Fatal(err)
	}
	c.goroutines = runtime.NumGoroutine() - c.before
	far.start(entries[0].Addr, 2)
	return c
}

// startStandIns starts the stand-ins, from rank 1 on, which know rank 0 and each other.
func (c *crowd) startStandIns(t testing.TB, entries []rankmap.Entry) {
	t.Helper()
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	for rank := 1; rank < len(entries); rank++ {
		conn, err := udp.Listen(udp.Config{Rank: rank, Map: m, NoOffload: true})
		if err != nil {
			t.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(entries))}
		for peer := range cfg.Peers {
			cfg.Peers[peer] = mpe.Peer{Transport: conn, Handshake: handshake.Config{
				Shape: protocol.FPGAShape(true), Timing: patient(handshake.DeployedFPGA(uint32(rank))),
				MaxWords: crowdWords,
				Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true,
					CarryOver: true},
			}}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		k, err := standin.New(config.KernelEcho, config.KernelOptions{Words: crowdWords}, standin.Env{})
		if err != nil {
			t.Fatal(err)
		}
		c.standins = append(c.standins, e)
		c.kernels.Go(func() {
			if err := k.Run(ctx, e); err != context.Canceled {
				t.Errorf("the kernel of rank %d exited: %v", rank, err)
			}
		})
	}
}

// freePort returns an address with a port that is free at the time of the call.
func freePort(t testing.TB, ip netip.Addr) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// close stops all ranks. No operation may be in progress.
func (c *crowd) close(ctx context.Context, t testing.TB) {
	soon, cancel := context.WithTimeout(ctx, time.Second) // its patient peers could take a minute
	defer cancel()
	if err := c.engine.Close(soon); err != nil {
		t.Error(err)
	}
	c.far.close()
	c.stop()
	c.kernels.Wait()
	for _, e := range c.standins {
		wedgetest.Check(t, e)
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}
