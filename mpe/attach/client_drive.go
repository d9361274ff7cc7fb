package attach

import (
	"context"
	"errors"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// A goroutine that waits for an operation reads the daemon's frames meanwhile: see
// package progress.

// start has the connection read from now on: source is polled, unless there is none.
func (c *Client) start(source wire.Polled) error {
	c.group.Init(nil, c.oversubscribed)
	var avoided func() int // the daemon's processor
	if r, ok := source.(wire.Rings); ok {
		avoided = r.OtherProcessor
	}
	c.group.PollAlone(avoided) // a program may use several ranks, each with a ring
	if c.source = source; source == nil || source.Descriptor() == wire.NoDescriptor {
		c.stream.Go(func() {
			_, err := c.pump()
			c.end(err)
		})
		return nil
	}
	if err := c.group.Add(source.Descriptor(), (*frames)(c), progress.Network); err != nil {
		return err
	}
	c.group.Watch()
	return nil
}

// wait waits for a value on n.
func (c *Client) wait(n <-chan struct{}) {
	_ = c.Await(context.Background(), n) // which never ends
}

// Await waits for a value on n, or for ctx, whose cause it returns.
func (c *Client) Await(ctx context.Context, n <-chan struct{}) error {
	if c.group.Len() == 0 {
		return c.stream.Await(ctx, n)
	}
	return c.group.Await(ctx, n)
}

// frames are a client's progress.Source.
type frames Client

// Poll handles what has come. When the connection ends, so does the client.
func (f *frames) Poll() (int, error) {
	c := (*Client)(f)
	c.out.Advance()
	n, err := c.pump()
	if errors.Is(err, wire.ErrNothing) {
		return n, nil
	}
	go c.end(err)
	return n, progress.ErrEnded
}

// Sleep implements progress.Source.
func (f *frames) Sleep() bool {
	return f.source.Sleep() && (!f.out.Stalled.Load() || f.out.Rings.Waits())
}
