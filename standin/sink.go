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
	buf, free := k.buffer()
	defer free()
	return k.loop(ctx, log, func() (bool, error) {
		_, err := k.recv(ctx, rank, k.opts.Peer, buf)
		return false, err
	})
}
