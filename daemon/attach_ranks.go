package daemon

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe"
)

var _ attach.Ranks = (*Daemon)(nil)

// Hosts implements attach.Ranks.
func (d *Daemon) Hosts() []int {
	var ranks []int
	for _, r := range d.ranks {
		if r.port != nil {
			ranks = append(ranks, r.cfg.Rank)
		}
	}
	return ranks
}

// Device implements attach.Ranks. The device does not split a program's messages into pieces of max_message_words,
// because the program sends messages in the form expected by the peer's program.
func (d *Daemon) Device(rank int) (mpe.Device, error) {
	r := d.findRank(rank)
	switch {
	case r == nil:
		return nil, fmt.Errorf("rank %d: %w: it is not a local rank of this daemon, attach to the daemon that runs it",
			rank, mpe.ErrRank)
	case r.port == nil:
		return nil, fmt.Errorf("rank %d: %w: it is a stand-in, attach to a rank with run: host", rank, mpe.ErrRank)
	}
	return r.Engine, nil
}
