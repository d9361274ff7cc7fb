package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// maxStopLines is the maximum number of pending messages that the daemon logs for each rank when it stops.
const maxStopLines = 20

// beginStop logs that the daemon is stopping and lists the pending messages. All tasks are still running.
func (d *Daemon) beginStop() {
	d.phase.Store(stopping)
	limit := d.current.Load().StopTimeout
	d.notifyStopping()
	d.log.Info("stopping", zap.Duration("stop_timeout", limit))
	for _, rank := range d.ranks {
		var waits []mpe.Waiting
		for _, w := range rank.Engine.Waits(0) {
			if !rank.isIdleWait(w) {
				waits = append(waits, w)
			}
		}
		logWaits(d.log, zapcore.InfoLevel, "message pending at stop", rank.cfg.Rank, waits)
	}
}

// logWaits logs the first maxStopLines waits of a rank, and then the number of waits that it did not log.
func logWaits(log *zap.Logger, level zapcore.Level, text string, rank int, waits []mpe.Waiting) {
	for _, w := range waits[:min(len(waits), maxStopLines)] {
		log.Log(level, text, append(waitFields(w), zap.Duration("elapsed", handshake.Round(w.Elapsed)),
			zap.String("detail", w.Text()))...)
	}
	if more := len(waits) - maxStopLines; more > 0 {
		log.Log(level, text, zap.Int("rank", rank), suppressedField(uint64(more)))
	}
}

// stopEngines closes all engines in parallel. During this, pending messages may still complete within stop_timeout.
func (d *Daemon) stopEngines() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.current.Load().StopTimeout)
	defer cancel()
	defer d.notifyDraining()()
	began := time.Now()
	var engines errgroup.Group
	for _, rank := range d.ranks {
		if rank.Engine == nil {
			continue
		}
		engines.Go(func() error {
			switch err := rank.Close(ctx); {
			case errors.Is(err, context.DeadlineExceeded):
				d.log.Warn("stop_timeout expired, pending messages aborted",
					zap.Int("rank", rank.cfg.Rank), zap.Duration("elapsed", time.Since(began).Round(time.Millisecond)))
				logWaits(d.log, zapcore.WarnLevel, "message aborted", rank.cfg.Rank, rank.Engine.Unfinished())
				return nil
			case err != nil && !errors.Is(err, os.ErrClosed):
				return fmt.Errorf("rank %d: %w", rank.cfg.Rank, err)
			}
			return nil
		})
	}
	return engines.Wait()
}
