package standin

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// anyMessage matches any message from a rank.
var anyMessage = mpe.Options{AnyDatatype: true, AnyTag: true}

// echo returns every message from KernelOptions.Peer to its sender, with the same datatype and tag. It loses a message
// that is longer than KernelOptions.Words or cannot be returned, as does an FPGA that is reset.
type echo struct{ base }

// Run implements Kernel.
func (k *echo) Run(ctx context.Context, rank Rank) error {
	if err := k.checkPeer(rank); err != nil {
		return err
	}
	buf, free := k.buffer()
	defer free()
	return k.loop(ctx, k.rankLog(rank), func() (bool, error) {
		st, err := k.recv(ctx, rank, k.opts.Peer, buf)
		if err != nil {
			return false, err
		}
		_, err = rank.Send(ctx, st.Peer, messageBytes(buf, st), replyOptions(st))
		return false, err
	})
}

// messageBytes returns the part of buf that holds a received message.
func messageBytes(buf []byte, st mpe.Status) []byte { return buf[:int64(st.Words)*protocol.WordLen] }

// replyOptions returns options with the datatype and tag of the received message.
func replyOptions(st mpe.Status) mpe.Options { return mpe.Options{Datatype: st.Datatype, Tag: st.Tag} }
