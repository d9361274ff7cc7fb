package daemon

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// explain extends the error of an operation with one of this daemon's stand-ins. It adds the reason why the stand-in's
// kernel is stuck. The caller must not hold an engine's lock.
func (d *Daemon) explain(err error) error {
	wait, ok := waitOfError(err)
	if !ok {
		return err
	}
	r := d.findRank(int(wait.Remote))
	if r == nil || r.kernel == nil || r.Engine == nil {
		return err
	}
	why := r.stuckReason(int(wait.Local))
	if why == "" {
		return err
	}
	return fmt.Errorf("%w; rank %d is a stand-in of this zrlmpid: %s", err, wait.Remote, why)
}

// waitOfError returns the failed wait that err describes.
func waitOfError(err error) (wait handshake.Wait, ok bool) {
	if e, ok := errors.AsType[*mpe.WaitError](err); ok {
		return e.Wait, true
	}
	if e, ok := errors.AsType[*handshake.TimeoutError](err); ok {
		return e.Wait, true
	}
	if e, ok := errors.AsType[*extended.TimeoutError](err); ok {
		return handshake.Wait{Local: e.Local, Remote: e.Remote}, true
	}
	return wait, false
}

// stuckReason returns the reason why a stand-in's kernel delays the messages of a peer, or "" if it does not.
func (r *localRank) stuckReason(peer int) string {
	r.mu.Lock()
	kernel, failure := r.kernelState, r.kernelErr
	r.mu.Unlock()
	switch kernel {
	case state.KernelFailed:
		return fmt.Sprintf("its kernel %v has failed: %v", r.kernel, failure)
	case state.KernelEnded:
		return fmt.Sprintf("its kernel %v has exited", r.kernel)
	}
	for _, w := range r.Engine.Waits(0) {
		if w.HasDeferred && int(w.Remote) == peer {
			return w.Text()
		}
	}
	return r.kernel.Stats().BlockReason()
}
