package standin

import (
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

// count counts an operation that has ended.
func (c *counters) count(st mpe.Status, err error) {
	switch {
	case err != nil:
	case st.Send:
		c.sent.Add(1)
		c.sentWords.Add(uint64(st.Words))
	default:
		c.received.Add(1)
		c.receivedWords.Add(uint64(st.Words))
	}
}
