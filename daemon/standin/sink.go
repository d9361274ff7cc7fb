package standin

import "context"

// sink receives messages of either datatype from KernelOptions.Peer and discards them.
type sink struct{ base }

// Run implements Kernel.
func (k *sink) Run(ctx context.Context, rank Rank) error {
	if err := k.checkPeer(rank); err != nil {
		return err
	}
	buf, free := k.buffer()
	defer free()
	return k.loop(ctx, k.rankLog(rank), func() (bool, error) {
		_, err := k.recv(ctx, rank, k.opts.Peer, buf)
		return false, err
	})
}
