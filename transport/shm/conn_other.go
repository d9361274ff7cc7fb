//go:build !linux

package shm

import "github.com/zrlmpi/zrlmpid/mpe"

// Conn would be all the shared memory of one rank. There is none on this system, and so no
// Conn.
type Conn struct{ mpe.Transport }

// Listen fails with a *ListenError of ErrUnsupported.
func Listen(cfg Config) (*Conn, error) {
	return nil, &ListenError{Rank: cfg.Rank, Addr: cfg.Map.Addr(cfg.Rank), Err: ErrUnsupported}
}

// Sharing returns 0.
func (*Conn) Sharing() (links, singleCopy int) { return 0, 0 }
