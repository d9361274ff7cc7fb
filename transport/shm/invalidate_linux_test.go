package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestInvalidateRace cancels exposed payload at any time and immediately overwrites the memory. A fetch must
// either return the exposed payload or fail.
func TestInvalidateRace(t *testing.T) {
	a, b := exposing(t)
	const packets, size = 3000, 64 << 10
	failed := make(chan error, 1)
	go func() {
		batch, dst := make([]mpe.RxPacket, 8), make([]byte, size)
		fetched := 0
		for next := uint32(1); next <= packets; {
			n, err := b.Poll(batch, nil)
			if err != nil {
				failed <- err
				return
			}
			if n == 0 {
				runtime.Gosched()
			}
			for i := range batch[:n] {
				if b.Fetch(&batch[i], dst) {
					fetched++
					if bytes.Count(dst, []byte{byte(next)}) != size {
						failed <- fmt.Errorf("packet %d differs from the exposed one", next)
						return
					}
				}
				next++
			}
		}
		if fetched < packets/2 {
			failed <- fmt.Errorf("only %d of %d packets were fetched", fetched, packets)
			return
		}
		t.Logf("%d of %d packets were fetched", fetched, packets)
		failed <- nil
	}()
	payload := make([]byte, size)
	p := transporttest.Packet(0, 1, 1, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for number := uint32(1); number <= packets; {
		for i := range payload {
			payload[i] = byte(number)
		}
		p.Payload, p.Exposed = payload, uint64(number)
		n, err := a.SendPackets(1, []mpe.Packet{p})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			runtime.Gosched()
			continue
		}
		// Every other one stays until it has been fetched. This takes long if another process occupies the
		// core.
		state := &descriptorAt(last(a.peers[1].link.out)).state
		for spins := rng.IntN(20000); number%2 == 0 || spins > 0; spins-- {
			if state.Load()&3 == stateCopied {
				break
			}
			if spins < 0 {
				runtime.Gosched()
			}
		}
		a.Invalidate(1, uint64(number))
		number++
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if n := a.exposed(1); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
}

// last returns the record of the last descriptor.
func last(w writer) []byte {
	return w.ring[w.exposed[len(w.exposed)-1].pos&uint64(len(w.ring)-1):]
}

// TestCancelledSends cancels sends and immediately overwrites their buffers. A message that arrives must be as it
// was sent.
func TestCancelledSends(t *testing.T) {
	for name, size := range map[string]int{"asked for": 3 << 20, "advertised": maxSingleCopy} {
		t.Run(name, func(t *testing.T) { cancelledSends(t, size) })
	}
}

func cancelledSends(t *testing.T, size int) {
	t.Setenv(EnvSingleCopy, "auto")
	_, engines := engines(t, false)
	src, dst := make([]byte, size), make([]byte, size)
	rng := rand.New(rand.NewPCG(3, 4))
	inTransfer := 0
	for i := range 40 {
		for k := range src {
			src[k] = byte(i)
		}
		recv, err := engines[1].Irecv(0, dst, mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		arrived := make(chan error, 1)
		go func() {
			_, err := recv.Wait(t.Context())
			arrived <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(1000))*time.Microsecond)
		_, err = engines[0].Send(ctx, 1, src, mpe.Options{})
		cancel()
		clear(src)
		var we *mpe.WaitError
		if errors.As(err, &we) {
			if !we.InTransfer { // no part of it was sent
				recv.Cancel()
				<-arrived
				continue
			}
			inTransfer++
		} else if err != nil {
			t.Fatal(err)
		}
		if err := <-arrived; err != nil || bytes.Count(dst, []byte{byte(i)}) != size {
			t.Fatalf("message %d: %v, %d of %d bytes", i, err, bytes.Count(dst, []byte{byte(i)}), size)
		}
	}
	t.Logf("%d sends were canceled in the middle", inTransfer)
}
