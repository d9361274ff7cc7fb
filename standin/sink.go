package standin

import "context"

// sink receives messages of both datatypes from Options.Peer, counts them and
// discards them.
type sink struct{ base }

// Run implements Kernel.
func (k *sink) Run(ctx context.Context, r Rank) error {
	if err := k.checkPeer(r); err != nil {
		return err
	}
	rank, log := k.begin(r)
	buf := k.buffer()
	return k.loop(ctx, log, func() (bool, error) {
		_, err := rank.Recv(ctx, k.opts.Peer, buf, anything)
		return false, err
	})
}
