package standin

import (
	"context"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// anything matches every message of a rank.
var anything = mpe.Options{AnyDatatype: true, AnyTag: true}

// echo sends every message from KernelOptions.Peer back to its sender: the same words, with
// the same datatype and tag. A message that cannot be sent back, or is longer
// than KernelOptions.Words, is lost, as it would be with an FPGA that is reset.
type echo struct{ base }

// Run implements Kernel.
func (k *echo) Run(ctx context.Context, r Rank) error {
	if err := k.checkPeer(r); err != nil {
		return err
	}
	buf, free := k.buffer()
	defer free()
	return k.loop(ctx, k.logOf(r), func() (bool, error) {
		st, err := k.recv(ctx, r, k.opts.Peer, buf)
		if err != nil {
			return false, err
		}
		_, err = r.Send(ctx, st.Peer, message(buf, st), sameAs(st))
		return false, err
	})
}

// message is the part of the buffer that a received message fills.
func message(buf []byte, st mpe.Status) []byte { return buf[:int64(st.Words)*protocol.WordLen] }

// sameAs qualifies a message that passes a received one on.
func sameAs(st mpe.Status) mpe.Options { return mpe.Options{Datatype: st.Datatype, Tag: st.Tag} }
