// Package appstest provides helpers for tests of the example programs: ranks on the loopback interface, and messages in
// the format of upstream's programs.
package appstest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Worlds starts a cluster of n ranks on the loopback interface.
func Worlds(t *testing.T, n int, profile protocol.Profile) []*mpi.Comm {
	t.Helper()
	devices, err := node.StartLocal(n, profile)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*mpi.Comm, n)
	for i, device := range devices {
		t.Cleanup(func() {
			ended, stop := context.WithCancel(context.Background())
			stop()
			_ = device.Close(ended) // the test handles messages that this cuts off
		})
		if all[i], err = mpi.New(device); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestContext returns a context whose deadline ends a hanging test.
func TestContext(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

// Send sends numbers to a rank.
func Send[T mpi.Number](ctx context.Context, c *mpi.Comm, to int, numbers ...T) error {
	return mpi.Send(ctx, c, numbers, to, 0)
}

// ExpectMessage receives a message. It returns an error unless the message consists of the given numbers.
func ExpectMessage[T mpi.Number](ctx context.Context, c *mpi.Comm, from int, numbers ...T) error {
	buf := make([]T, len(numbers))
	st, err := mpi.Recv(ctx, c, buf, from, 0)
	if err == nil && (mpi.Count[T](st) != len(numbers) || !slices.Equal(buf, numbers)) {
		err = fmt.Errorf("rank %d received %v from rank %d, want %v", c.Rank(), buf, from, numbers)
	}
	return err
}
