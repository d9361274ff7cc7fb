//go:build !linux

package shm

import "github.com/zrlmpi/zrlmpid/mpe"

// Conn is never created: this system has no shared memory between ranks.
type Conn struct{ mpe.Transport }

// Listen returns a *ListenError with ErrUnsupported.
func Listen(cfg Config) (*Conn, error) {
	return nil, &ListenError{Rank: cfg.Rank, Addr: cfg.Map.Addr(cfg.Rank), Err: ErrUnsupported}
}

// Sharing returns 0.
func (*Conn) Sharing() (links, singleCopy int) { return 0, 0 }
