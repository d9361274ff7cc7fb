package standin

import (
	"context"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Stats is what a kernel has done. A message counts when its operation ended
// without an error.
type Stats struct {
	Sent          uint64 `json:"sent"`
	SentWords     uint64 `json:"sent_words"`
	Received      uint64 `json:"received"`
	ReceivedWords uint64 `json:"received_words"`
	// Errors counts failed operations, and a program's mistakes.
	Errors uint64 `json:"errors"`
	// Starts counts how often the program of an exec kernel was started.
	Starts uint64 `json:"starts,omitempty"`
}

type counters struct {
	sent, sentWords, received, receivedWords, errors, starts atomic.Uint64
}

func (c *counters) stats() Stats {
	return Stats{
		Sent: c.sent.Load(), SentWords: c.sentWords.Load(),
		Received: c.received.Load(), ReceivedWords: c.receivedWords.Load(),
		Errors: c.errors.Load(), Starts: c.starts.Load(),
	}
}

// calls is a Rank whose messages are counted.
type calls struct {
	r Rank
	c *counters
}

func (c calls) Rank() int { return c.r.Rank() }
func (c calls) Size() int { return c.r.Size() }

func (c calls) Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error) {
	st, err := c.r.Send(ctx, dst, data, opts)
	if err == nil {
		c.c.sent.Add(1)
		c.c.sentWords.Add(uint64(st.Words))
	}
	return st, err
}

func (c calls) Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error) {
	st, err := c.r.Recv(ctx, src, buf, opts)
	if err == nil {
		c.c.received.Add(1)
		c.c.receivedWords.Add(uint64(st.Words))
	}
	return st, err
}
