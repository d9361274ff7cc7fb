package integration_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// BenchmarkRawUDP measures the limit of the machine: the round trip of 32 bytes between two UDP sockets on loopback,
// without any protocol. A message takes two round trips, one for SEND_REQUEST and CLEAR_TO_SEND, and one for DATA and
// ACK.
func BenchmarkRawUDP(b *testing.B) {
	b.Run("sleeping", func(b *testing.B) {
		near, far := rawPair(b)
		go func() {
			buf := make([]byte, 64)
			for {
				n, from, err := far.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				far.WriteToUDPAddrPort(buf[:n], from)
			}
		}()
		buf := make([]byte, 32)
		to := far.LocalAddr().(*net.UDPAddr).AddrPort()
		for b.Loop() {
			near.WriteToUDPAddrPort(buf, to)
			if _, _, err := near.ReadFromUDPAddrPort(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("polling", func(b *testing.B) {
		near, far := rawSockets(b)
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			buf := make([]byte, 64)
			for {
				n, from, ok := poll(far, buf, &stop)
				if !ok {
					return
				}
				syscall.Sendto(far, buf[:n], 0, from)
			}
		}()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		buf := make([]byte, 32)
		to := sockname(b, far)
		for b.Loop() {
			syscall.Sendto(near, buf, 0, to)
			if _, _, ok := poll(near, buf, &stop); !ok {
				b.Fatal("stopped")
			}
		}
		stop.Store(true)
		<-done
	})
}

// BenchmarkPing measures the round trip of a message between two ranks. half-rtt-us is the time of one message, with a
// lower bound of two raw round trips, or half of one for an eager message.
func BenchmarkPing(b *testing.B) {
	for _, kind := range []rankmap.Kind{rankmap.FPGA, rankmap.Software} {
		for _, words := range []int{1, 346, 1000, 100_000} {
			b.Run(fmt.Sprintf("peer=%v/words=%d", kind, words),
				func(b *testing.B) { benchmarkPing(b, kind, words, protocol.CloudFPGA) })
		}
	}
	for _, words := range []int{1, 336, 4096, 25_000, 1_000_000} {
		b.Run(fmt.Sprintf("extended/words=%d", words), func(b *testing.B) {
			benchmarkPing(b, rankmap.Software, words, protocol.Extended)
		})
	}
}

// pingEngines returns the engines of two ranks. The transport is "udp" or "shm".
func pingEngines(b *testing.B, kind rankmap.Kind, profile protocol.Profile, transport string) (engines [2]*mpe.Engine) {
	b.Helper()
	entries := []rankmap.Entry{
		{Rank: 0, Addr: netip.MustParseAddrPort("127.0.79.1:27180"), Kind: rankmap.Software},
		{Rank: 1, Addr: netip.MustParseAddrPort("127.0.79.2:27180"), Kind: kind},
	}
	m, err := rankmap.New(entries)
	if err != nil {
		b.Fatal(err)
	}
	rules := handshake.SoftwarePeer()
	if kind == rankmap.FPGA {
		rules = handshake.FPGAPeer(1)
	}
	configs := []handshake.Config{
		{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), Peer: rules, MaxWords: 1 << 20},
		{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: 1 << 20},
	}
	for rank := range engines {
		peer := mpe.Peer{Handshake: configs[rank]}
		if profile == protocol.Extended {
			peer.Extended = &extended.Config{Seed: uint64(rank) + 1}
		}
		if transport == "shm" {
			peer.Extended.MaxPayload, peer.Extended.HeaderChecksum = shm.MaxPayload, true
			peer.Extended.Window, peer.Extended.WindowBytes = shm.Window(shm.DefaultRing(2))
			peer.Transport, err = shm.Listen(shm.Config{Rank: rank, Map: m})
		} else {
			peer.Transport, err = udp.Listen(udp.Config{Rank: rank, Map: m, ReceiveBuffer: 16 << 20})
		}
		if err != nil {
			b.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		cfg.Peers[1-rank] = peer
		if engines[rank], err = mpe.New(cfg); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			end, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			engines[rank].Close(end)
		})
	}
	return engines
}

// BenchmarkProcessorTime measures the processor time of a message at both ranks together: one goroutine polls them
// alternately and never waits.
func BenchmarkProcessorTime(b *testing.B) {
	for _, side := range []struct {
		name      string
		profile   protocol.Profile
		transport string
	}{
		{"cloudfpga-udp", protocol.CloudFPGA, "udp"},
		{"extended-udp", protocol.Extended, "udp"},
		{"extended-shm", protocol.Extended, "shm"},
	} {
		b.Run(side.name, func(b *testing.B) {
			engines := pingEngines(b, rankmap.Software, side.profile, side.transport)
			data, buf := make([]byte, 4), make([]byte, 4)
			message := func() {
				recv, err := engines[1].Irecv(0, buf, mpe.Options{})
				if err != nil {
					b.Fatal(err)
				}
				send, err := engines[0].Isend(1, data, mpe.Options{})
				if err != nil {
					b.Fatal(err)
				}
				for sent, received := false, false; !sent || !received; {
					if _, received, err = recv.Test(); err != nil {
						b.Fatal(err)
					}
					if _, sent, err = send.Test(); err != nil {
						b.Fatal(err)
					}
				}
				recv.Free()
				send.Free()
			}
			message() // establish the session
			b.ReportAllocs()
			for b.Loop() {
				message()
			}
		})
	}
}

// BenchmarkWindow is like BenchmarkProcessorTime with 64 messages in flight, through package mpi. An operation is a
// message. The metrics are the times to post a receive, to post and complete a send, and to complete a receive.
func BenchmarkWindow(b *testing.B) {
	const window = 64
	engines := pingEngines(b, rankmap.Software, protocol.Extended, "shm")
	var worlds [2]*mpi.Comm
	for rank, e := range engines {
		var err error
		if worlds[rank], err = mpi.New(e); err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	var took [4]time.Duration
	data, bufs := []int32{1}, make([][1]int32, window)
	recvs, sends := make([]mpi.Request, window), make([]mpi.Request, window)
	messages := func() (err error) {
		steps := []func() error{
			func() error {
				for i := range recvs {
					if recvs[i], err = mpi.Irecv(worlds[1], bufs[i][:], 0, 0); err != nil {
						return err
					}
				}
				return nil
			},
			func() error {
				for i := range sends {
					if sends[i], err = mpi.Isend(worlds[0], data, 1, 0); err != nil {
						return err
					}
				}
				return nil
			},
			func() error { return mpi.Waitall(ctx, sends, nil) },
			func() error { return mpi.Waitall(ctx, recvs, nil) },
		}
		for i, step := range steps {
			start := time.Now()
			if err := step(); err != nil {
				return err
			}
			took[i] += time.Since(start)
		}
		return nil
	}
	if _, err := engines[0].Isend(1, nil, mpe.Options{}); err != nil {
		b.Fatal(err)
	}
	for received := false; !received; engines[0].PollOnce() { // until the session is established
		engines[1].PollOnce()
		_, found, err := mpi.Iprobe(worlds[1], 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		if received = found; found {
			if _, err := mpi.Recv(ctx, worlds[1], []int32{}, 0, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%window == 0 {
			if err := messages(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i, unit := range []string{"post-recv-ns", "send-ns", "wait-send-ns", "wait-recv-ns"} {
		b.ReportMetric(float64(took[i].Nanoseconds())/float64(b.N), unit)
	}
}

func benchmarkPing(b *testing.B, kind rankmap.Kind, words int, profile protocol.Profile) {
	engines := pingEngines(b, kind, profile, "udp")
	pingPong(b, engines[0], engines[1], words)
}

// pingPong sends a message back and forth.
func pingPong(b *testing.B, near, far *mpe.Engine, words int) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	echoed := make(chan struct{})
	go func() {
		defer close(echoed)
		buf := make([]byte, words*4)
		for {
			if _, err := far.Recv(ctx, near.Rank(), buf, mpe.Options{}); err != nil {
				return
			}
			if _, err := far.Send(ctx, near.Rank(), buf, mpe.Options{}); err != nil {
				return
			}
		}
	}()
	data, buf := make([]byte, words*4), make([]byte, words*4)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)) * 2)
	for b.Loop() {
		r, err := near.Irecv(far.Rank(), buf, mpe.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := near.Send(ctx, far.Rank(), data, mpe.Options{}); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2e3, "half-rtt-us")
	cancel()
	<-echoed
}

func rawPair(b *testing.B) (near, far *net.UDPConn) {
	b.Helper()
	var conns [2]*net.UDPConn
	for i, ip := range []string{"127.0.79.3:0", "127.0.79.4:0"} {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(ip)))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		conns[i] = c
	}
	return conns[0], conns[1]
}

func rawSockets(b *testing.B) (near, far int) {
	b.Helper()
	var fds [2]int
	for i, last := range []byte{5, 6} {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { syscall.Close(fd) })
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 79, last}}); err != nil {
			b.Fatal(err)
		}
		fds[i] = fd
	}
	return fds[0], fds[1]
}

func sockname(b *testing.B, fd int) syscall.Sockaddr {
	b.Helper()
	sa, err := syscall.Getsockname(fd)
	if err != nil {
		b.Fatal(err)
	}
	return sa
}

func poll(fd int, buf []byte, stop *atomic.Bool) (int, syscall.Sockaddr, bool) {
	for !stop.Load() {
		n, from, err := syscall.Recvfrom(fd, buf, 0)
		if err == nil {
			return n, from, true
		}
	}
	return 0, nil, false
}
