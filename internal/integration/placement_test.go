package integration_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// pattern fills a message with words that identify both the message and the position.
func pattern(buf []byte, from, number int) {
	for i := 0; i+4 <= len(buf); i += 4 {
		binary.LittleEndian.PutUint32(buf[i:], uint32(i/4)*2654435761+uint32(from)<<24+uint32(number))
	}
}

func checkPattern(buf []byte, from, number int) error {
	for i := 0; i+4 <= len(buf); i += 4 {
		if got, want := binary.LittleEndian.Uint32(buf[i:]),
			uint32(i/4)*2654435761+uint32(from)<<24+uint32(number); got != want {
			return fmt.Errorf("message %d from rank %d: byte %d is of another place or message (%#x, not %#x)", number,
				from, i, got, want)
		}
	}
	return nil
}

// TestDirectPlacement writes payload directly into the buffers of receives while packets of other peers are received
// and callers cancel receives. It checks that every message is intact, and that no buffer is modified after it was
// returned to its caller.
func TestDirectPlacement(t *testing.T) {
	const senders, messages = 3, 60
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		t.Run(profile.String(), func(t *testing.T) {
			t.Parallel()
			devices, err := node.StartLocal(senders+1, profile)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			var all sync.WaitGroup
			for rank, d := range devices[1:] {
				from := rank + 1
				all.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(from), 1))
					for i := range messages {
						buf := make([]byte, 4*(1+rng.IntN(100_000)))
						pattern(buf, from, i)
						if err := send(ctx, d, 0, buf); err != nil {
							t.Errorf("rank %d: %v", from, err)
							return
						}
					}
				})
				all.Go(func() {
					if err := receiveAll(ctx, devices[0], from, messages); err != nil {
						t.Error(err)
						stop()
					}
				})
			}
			all.Wait()
			for _, d := range devices {
				if err := d.Close(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func send(ctx context.Context, d mpe.Device, to int, buf []byte) error {
	op, err := d.Start(mpe.Operation{Kind: mpe.OpSend, Peer: to, Buf: buf})
	if err != nil {
		return err
	}
	_, err = op.Await(ctx)
	return err
}

// receiveAll receives a rank's messages, and cancels every third receive early.
func receiveAll(ctx context.Context, d mpe.Device, from, messages int) error {
	rng := rand.New(rand.NewPCG(uint64(from), 2))
	var ours [][]byte
	for i := 0; i < messages; {
		wait, cancel := ctx, context.CancelFunc(func() {})
		if rng.IntN(3) == 0 {
			wait, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
		}
		buf := make([]byte, 400_000)
		op, err := d.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: from, Buf: buf})
		if err != nil {
			cancel()
			return err
		}
		st, err := op.Await(wait)
		cancel()
		if err == nil {
			if err := checkPattern(buf[:st.Bytes], from, i); err != nil {
				return err
			}
			i++
			continue
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		// The buffer is ours again, so nothing may overwrite these changes.
		for k := range buf {
			buf[k] = 0xEE
		}
		ours = append(ours, buf)
	}
	for _, buf := range ours {
		for k, b := range buf {
			if b != 0xEE {
				return fmt.Errorf("byte %d of a buffer was written to after its receive was cancelled", k)
			}
		}
	}
	return nil
}
