package attach

import (
	"context"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// BenchmarkPingPong: a round trip is two sends and two receives of two programs
// that are attached to one daemon.
func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{4, 1024, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := serve(b, newWorld(2, 0, 1), Options{})
			ping, pong := h.dial(b, 0), h.dial(b, 1)
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, n)
				for range b.N {
					finish(b, recv(b, pong, 0, 0, buf))
					finish(b, send(b, pong, 0, 0, buf))
				}
			}()
			b.SetBytes(2 * int64(n))
			b.ReportAllocs()
			buf, back := make([]byte, n), make([]byte, n)
			b.ResetTimer()
			for range b.N {
				r := recv(b, ping, 1, 0, back)
				s := send(b, ping, 1, 0, buf)
				finish(b, r)
				finish(b, s)
			}
			<-done
		})
	}
}

// BenchmarkProbe: to the daemon and back.
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

// BenchmarkPipelined: messages of 4 bytes, 64 under way.
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
		stream(func(i int) mpe.Op { return recv(b, pong, 0, 0, bufs[i%depth][:]) })
	}()
	b.ReportAllocs()
	b.ResetTimer()
	data := make([]byte, 4)
	// Synchronous ones cannot run ahead and make the fake rank search long lists.
	stream(func(int) mpe.Op { return begin(b, ping, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: data}) })
	<-received
}

// finish is wait without its deadline, which costs more than the operation.
func finish(b *testing.B, op mpe.Op) {
	if _, err := op.Wait(context.Background()); err != nil {
		b.Error(err)
	}
}
