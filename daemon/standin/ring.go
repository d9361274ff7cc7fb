package standin

import (
	"context"
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// ring is upstream's triangle example for any number of ranks. In each of KernelOptions.Count rounds, rank 0 sends to
// rank 1 and then receives from the last rank. Every other rank receives from the rank below and passes the message on
// to the rank above; the last rank passes it on to rank 0.
//
// Rank 0's first message consists of KernelOptions.Words words of KernelOptions.Datatype, with the values of
// PatternWord for message 0. In later rounds, rank 0 sends the message that it received. After a failure, it starts
// again with the first message. If the previous message is still in transit, two messages then circulate.
type ring struct{ base }

// Run implements Kernel.
func (k *ring) Run(ctx context.Context, rank Rank) error {
	size := rank.Size()
	if size < 2 {
		return fmt.Errorf("kernel %s on rank %d of %d: %w: a ring needs another rank", k.name, rank.Rank(), size,
			mpe.ErrRank)
	}
	below, above := (rank.Rank()+size-1)%size, (rank.Rank()+1)%size
	buf, free := k.buffer()
	defer free()
	rounds := 0

	pass := func() error {
		st, err := k.recv(ctx, rank, below, buf)
		if err != nil {
			return err
		}
		_, err = rank.Send(ctx, above, messageBytes(buf, st), replyOptions(st))
		return err
	}
	if rank.Rank() == 0 {
		pass = k.rootRound(ctx, rank, below, above, buf)
	}
	return k.loop(ctx, k.rankLog(rank), func() (bool, error) {
		if err := pass(); err != nil {
			return false, err
		}
		rounds++
		return rounds == k.opts.Count, nil
	})
}

// rootRound returns the function with which rank 0 performs one round of the ring.
func (k *ring) rootRound(ctx context.Context, rank Rank, below, above int, buf []byte) func() error {
	datatype := protocol.Datatype(k.opts.Datatype)
	var token []byte // nil before the first round and after a failure
	var opts mpe.Options
	return func() error {
		if token == nil {
			token = buf[:k.length*protocol.WordLen]
			fillPattern(token, datatype, 0)
			opts = mpe.Options{Datatype: datatype}
		}
		msg := token
		token = nil
		if _, err := rank.Send(ctx, above, msg, opts); err != nil {
			return err
		}
		st, err := k.recv(ctx, rank, below, buf)
		if err != nil {
			return err
		}
		token, opts = messageBytes(buf, st), replyOptions(st)
		return nil
	}
}
