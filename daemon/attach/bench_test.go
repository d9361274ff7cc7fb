package attach

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
)

// BenchmarkPingPong measures round trips between two programs attached to the same daemon. A round trip
// consists of two sends and two receives.
func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{4, 1024, 64 << 10, 1 << 20, 4 << 20, 64 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := serve(b, newWorld(2, 0, 1), Options{})
			ping, pong := h.dial(b, 0), h.dial(b, 1)
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, n)
				for range b.N {
					finish(b, attachtest.Recv(b, pong, 0, 0, buf))
					finish(b, attachtest.Send(b, pong, 0, 0, buf))
				}
			}()
			b.SetBytes(2 * int64(n))
			b.ReportAllocs()
			buf, back := make([]byte, n), make([]byte, n)
			b.ResetTimer()
			for range b.N {
				r := attachtest.Recv(b, ping, 1, 0, back)
				s := attachtest.Send(b, ping, 1, 0, buf)
				finish(b, r)
				finish(b, s)
			}
			<-done
		})
	}
}

// childDaemon serves the ranks of a world until the process is killed.
func childDaemon(socket string) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serving")
	_ = NewServer(newWorld(2, 0, 1), Options{}).Serve(context.Background(), l)
}

// echo attaches to rank 1 and sends every message back until the daemon exits.
func echo(socket string) {
	c, err := client.Dial(context.Background(), socket, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("attached")
	buf := make([]byte, 1<<20)
	for {
		op, err := c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf})
		if err != nil {
			return
		}
		st, err := op.Await(context.Background())
		if err != nil {
			return
		}
		op.Free()
		if op, err = c.Start(mpe.Operation{Kind: mpe.OpSend, Peer: 0, Buf: buf[:st.Bytes]}); err != nil {
			return
		}
		if _, err = op.Await(context.Background()); err != nil {
			return
		}
		op.Free()
	}
}

// startProcess runs the test binary as another program and waits until it reports that it is ready. It kills
// the program at the end of the benchmark.
func startProcess(b *testing.B, env, ready string) {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != ready+"\n" {
		b.Fatal(line, err)
	}
}

// BenchmarkPing measures round trips to a daemon that runs in another process, and to another program.
func BenchmarkPing(b *testing.B) {
	socket := attachtest.SocketPath(b)
	startProcess(b, childServer+"="+socket, "serving")
	c, err := client.Dial(b.Context(), socket, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	b.Run("probe", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := c.Probe(context.Background(), mpe.Match{Source: 1}, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	message := func(name string, peer int) {
		for _, n := range []int{4, 4096, 1 << 20} {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				b.ReportAllocs()
				buf, back := make([]byte, n), make([]byte, n)
				for b.Loop() {
					r := attachtest.Recv(b, c, peer, 0, back)
					finish(b, attachtest.Send(b, c, peer, 0, buf))
					finish(b, r)
				}
			})
		}
	}
	message("itself", 0)
	startProcess(b, childEcho+"="+socket, "attached")
	message("echo", 1)
}

// BenchmarkProbe measures round trips to the daemon.
func BenchmarkProbe(b *testing.B) {
	h := serve(b, newWorld(2, 0), Options{})
	c := h.dial(b, 0)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Probe(b.Context(), mpe.Match{Source: 1}, false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPipelined measures messages of 4 bytes when 64 of them are in flight.
func BenchmarkPipelined(b *testing.B) {
	h := serve(b, newWorld(2, 0, 1), Options{})
	ping, pong := h.dial(b, 0), h.dial(b, 1)
	const depth = 64
	stream := func(start func(i int) mpe.Op) {
		var ops [depth]mpe.Op
		for i := range b.N + depth {
			if op := ops[i%depth]; op != nil {
				finish(b, op)
			}
			if ops[i%depth] = nil; i < b.N {
				ops[i%depth] = start(i)
			}
		}
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		var bufs [depth][4]byte
		stream(func(i int) mpe.Op { return attachtest.Recv(b, pong, 0, 0, bufs[i%depth][:]) })
	}()
	b.ReportAllocs()
	b.ResetTimer()
	data := make([]byte, 4)
	// Synchronous sends cannot get far ahead of the receives, which would make the fake rank search long lists.
	stream(func(int) mpe.Op {
		return attachtest.StartOp(b, ping, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: data})
	})
	<-received
}

// finish is Wait without its deadline, because the deadline costs more than the operation.
func finish(b *testing.B, op mpe.Op) {
	if _, err := op.Await(context.Background()); err != nil {
		b.Error(err)
	}
	op.Free()
}
