package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// localRank is a rank that this daemon runs.
type localRank struct {
	*node.Rank
	cfg    *config.Rank
	kernel standin.Kernel // set for a stand-in
	port   *port          // set for a host
	// onFailure is called when one of the kernel's exchanges with a peer fails. It must be set before the kernel runs.
	onFailure func(error)

	mu          sync.Mutex
	kernelState state.KernelState
	kernelErr   error
}

// newLocalRank prepares a rank without binding its sockets.
func newLocalRank(log *zap.Logger, cfg *config.Config, rank *config.Rank, failureLimit time.Duration) (*localRank,
	error) {
	planned, err := node.Plan(cfg, rank)
	planned.Attached, planned.OpenPath = true, openPath
	r := &localRank{Rank: planned, cfg: rank}
	errs := []error{err}
	if rank.Run == config.RunStandin {
		env := standin.Env{Log: log, FPGAs: cfg.UpstreamFPGAs(), FailureLimit: failureLimit,
			OnFailure: func(err error) { r.onFailure(err) }}
		kernel, err := newKernel(cfg, rank, env)
		errs = append(errs, err)
		r.kernel, r.kernelState = kernel, state.KernelRunning
	}
	return r, errors.Join(errs...)
}

func newKernel(cfg *config.Config, rank *config.Rank, env standin.Env) (standin.Kernel, error) {
	kernel, err := standin.New(rank.Kernel.Spec(), *rank.KernelOptions, env)
	if err != nil {
		return nil, cfg.RankError(rank.Rank, "kernel", err.Error())
	}
	return kernel, nil
}

// addDetails adds information that only the daemon has, such as the attached program, to the state of the rank.
func (r *localRank) addDetails(rankInfo *state.RankInfo, depth state.Detail, attached []attach.AttachedProgram) {
	for _, attachedProgram := range attached {
		if attachedProgram.Rank != r.cfg.Rank {
			continue
		}
		p := state.Program{
			PID: attachedProgram.PID, UID: attachedProgram.UID, Seconds: time.Since(attachedProgram.AttachedAt).Seconds(),
			Operations: attachedProgram.Operations, Bytes: attachedProgram.Bytes,
		}
		if depth == state.DetailFull {
			p.Stopped = control.IsStopped(attachedProgram.PID)
		}
		rankInfo.Attached = append(rankInfo.Attached, p)
	}
	if r.kernel == nil {
		return
	}
	stats := r.kernel.Stats()
	rankInfo.Kernel, rankInfo.KernelStats, rankInfo.KernelBlockReason = r.kernel.String(), &stats, stats.BlockReason()
	r.mu.Lock()
	defer r.mu.Unlock()
	rankInfo.KernelState = r.kernelState
	if r.kernelErr != nil {
		rankInfo.KernelError = r.kernelErr.Error()
	}
}

// start creates the engine of a rank with bound sockets.
func (r *localRank) start(observer mpe.Observer, log *zap.Logger, explain func(error) error) error {
	if err := r.Start(observer); err != nil {
		return err
	}
	if k, ok := r.kernel.(standin.WireKernel); ok {
		k.Connect(r.Wire())
	}
	if r.cfg.Run == config.RunHost {
		r.port = newPort(log, r.Engine, r.Links, int(node.MessageLimit(r.Config)), explain)
	}
	return nil
}

// runKernel runs the stand-in's kernel until ctx is done. If the kernel fails earlier, runKernel returns its error.
func (r *localRank) runKernel(ctx context.Context, log *zap.Logger) error {
	err := r.kernel.Run(ctx, r.Engine)
	if ctx.Err() != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kernelState, r.kernelErr = state.KernelEnded, err
	if err != nil {
		err = fmt.Errorf("kernel %v of stand-in %d: %w", r.kernel, r.cfg.Rank, err)
		r.kernelState = state.KernelFailed
		log.Error("kernel failed: its rank no longer answers, restart zrlmpid", zap.Int("rank", r.cfg.Rank),
			zap.Stringer("kernel", r.kernel), zap.Error(r.kernelErr))
	}
	return err
}

// minWarnAfter returns the shortest warn_after among the links of the rank, or 0 if no link sets one.
func (r *localRank) minWarnAfter() time.Duration {
	shortest := time.Duration(0)
	for _, l := range r.Links() {
		if l.WarnAfter > 0 && (shortest == 0 || l.WarnAfter < shortest) {
			shortest = l.WarnAfter
		}
	}
	return shortest
}

// isIdleWait reports whether w is the receive in which an idle kernel waits for work. Once any message, matching or
// not, has been received, the kernel is not idle.
func (r *localRank) isIdleWait(w mpe.Waiting) bool {
	return r.kernel != nil && w.State == handshake.WaitRequest && !w.HasDeferred
}
