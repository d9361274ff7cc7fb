package attach

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
)

// TestErrorsOfOperations checks that Wait returns the errors reported by a rank.
func TestErrorsOfOperations(t *testing.T) {
	h := serve(t, newWorld(2, 0, 1), Options{})
	a, b := h.dial(t, 0), h.dial(t, 1)
	if _, err := attachtest.Send(t, a, 5, 0, nil).Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrRank) {
		t.Errorf("rank 5: %v", err)
	}
	if _, err := attachtest.Send(t, a, 1, 5000, nil).Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrTag) {
		t.Errorf("tag 5000: %v", err)
	}
	for _, op := range []mpe.Operation{{Kind: mpe.OpSend, Tag: -2}, {Kind: mpe.OpSend, Tag: 1 << 40},
		{Kind: mpe.OpSend, Peer: 1 << 40}, {Kind: 9}} {
		if _, err := a.Start(op); err == nil {
			t.Errorf("%+v was posted", op)
		}
	}
	buf := make([]byte, 8)
	op := attachtest.Recv(t, b, 0, 0, buf)
	attachtest.Wait(t, attachtest.Send(t, a, 1, 0, attachtest.Pattern(3, 100)))
	st, err := op.Await(attachtest.TestContext(t))
	e, ok := errors.AsType[*mpe.TruncatedError](err)
	if !ok || e.Posted != 8 || e.Sent != 100 || st.Bytes != 100 || !errors.Is(err, handshake.ErrTruncated) {
		t.Errorf("%+v, %v", st, err)
	}
	attachtest.CheckEqual(t, "the beginning of a truncated message", buf, attachtest.Pattern(3, 100)[:8])
	h.w.mu.Lock()
	h.w.ranks[0].startErr = fmt.Errorf("rank 0: %w", mpe.ErrClosed)
	h.w.mu.Unlock()
	if _, err := attachtest.Send(t, a, 1, 0, nil).Await(attachtest.TestContext(t)); !errors.Is(err, mpe.ErrClosed) {
		t.Errorf("a closed rank: %v", err)
	}
}
