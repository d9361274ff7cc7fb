package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestStartLocal checks that every rank can reach every other rank, in several clusters simultaneously.
func TestStartLocal(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.V09, protocol.Extended} {
			t.Run(fmt.Sprintf("%d %v", n, profile), func(t *testing.T) {
				t.Parallel()
				devices, err := StartLocal(n, profile)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				var all sync.WaitGroup
				for rank, d := range devices {
					if d.Rank() != rank || d.Size() != n {
						t.Fatalf("device %d is rank %d of %d", rank, d.Rank(), d.Size())
					}
					all.Go(func() { greet(ctx, t, d, profile) })
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
}

// greet exchanges a word with every other rank.
func greet(ctx context.Context, t *testing.T, d mpe.Device, profile protocol.Profile) {
	if d.Resting() == nil {
		t.Errorf("rank %d takes no sends back, as its engine does", d.Rank())
	}
	for other := range d.Size() {
		if other == d.Rank() {
			continue
		}
		if info, err := d.Peer(other); err != nil || info.Profile != profile.String() {
			t.Errorf("rank %d of rank %d: %+v, %v", d.Rank(), other, info, err)
		}
		word := make([]byte, 4)
		in, err := d.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: other, Buf: word})
		if err != nil {
			t.Error(err)
			return
		}
		out, err := d.Start(mpe.Operation{Kind: mpe.OpSend, Peer: other, Buf: []byte{byte(d.Rank() + 1), 2, 3, 4}})
		if err != nil {
			t.Error(err)
			return
		}
		_, errOut := out.Await(ctx)
		if _, err := in.Await(ctx); err != nil || errOut != nil || int(word[0]) != other+1 {
			t.Errorf("rank %d has % x from rank %d: %v, %v", d.Rank(), word, other, err, errOut)
		}
	}
}

func TestStartLocalErrors(t *testing.T) {
	for _, n := range []int{-1, 0, 129} {
		if devices, err := StartLocal(n, protocol.CloudFPGA); err == nil || devices != nil ||
			!strings.Contains(err.Error(), "1 to 128") {
			t.Errorf("%d ranks: %v, %v", n, devices, err)
		}
	}
	if _, err := StartLocal(2, protocol.Profile(200)); err == nil || !strings.Contains(err.Error(), "profile") {
		t.Errorf("no such profile: %v", err)
	}
}

func TestUntilFree(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		name  string
		err   error
		times int // number of failures
		calls int
		want  error
	}{
		{"at once", nil, 0, 1, nil},
		{"port taken twice", syscall.EADDRINUSE, 2, 3, nil},
		{"no port is ever free", syscall.EADDRINUSE, 1000, maxPortAttempts, syscall.EADDRINUSE},
		{"another error", other, 1000, 1, other},
	} {
		calls := 0
		devices, err := retryPortInUse(func() ([]mpe.Device, error) {
			if calls++; calls <= c.times {
				return nil, fmt.Errorf("rank 0: %w", c.err)
			}
			return []mpe.Device{nil}, nil
		})
		if calls != c.calls || !errors.Is(err, c.want) || (err == nil) != (len(devices) == 1) {
			t.Errorf("%s: %d calls, %v, %v", c.name, calls, devices, err)
		}
	}
}
