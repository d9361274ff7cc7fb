package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// maxStopLines bounds how many messages of a rank the log tells of one by one when the
// daemon stops.
const maxStopLines = 20

// beginStop is called when the daemon is to stop, while all still runs.
func (d *Daemon) beginStop() {
	d.phase.Store(stopping)
	limit := d.current.Load().StopTimeout
	d.notifyStopping()
	d.log.Info("zrlmpid stops", zap.Duration("stop_timeout", limit))
	for _, r := range d.ranks {
		var waits []mpe.Waiting
		for _, w := range r.Engine.Waits(0) {
			if !r.idles(w) {
				waits = append(waits, w)
			}
		}
		logWaits(waits, func(text string, fields ...zap.Field) { d.log.Info("when it was told to stop, "+text, fields...) }, r.cfg.Rank)
	}
}

// logWaits tells of the first waits of a rank, and how many more there are.
func logWaits(waits []mpe.Waiting, tell func(text string, fields ...zap.Field), rank int) {
	for i, w := range waits {
		if i == maxStopLines {
			tell(fmt.Sprintf("%d more messages of rank %d waited", len(waits)-i, rank), zap.Int("rank", rank))
			return
		}
		fields := []zap.Field{zap.Int("rank", rank)}
		if !w.AnySource {
			fields = append(fields, zap.Uint32("peer", w.Remote))
		}
		tell(w.Text, fields...)
	}
}

// stopEngines ends all engines at once; what is under way may end well.
func (d *Daemon) stopEngines() error {
	ctx, cancel := context.WithTimeout(context.Background(), d.current.Load().StopTimeout)
	defer cancel()
	defer d.notifyDraining()()
	began := time.Now()
	var engines errgroup.Group
	for _, r := range d.ranks {
		if r.Engine == nil {
			continue
		}
		engines.Go(func() error {
			switch err := r.Close(ctx); {
			case errors.Is(err, context.DeadlineExceeded):
				after := time.Since(began).Round(time.Millisecond)
				d.log.Warn(fmt.Sprintf("rank %d had messages under way when stop_timeout was over, and they were cut off", r.cfg.Rank),
					zap.Int("rank", r.cfg.Rank), zap.Duration("after", after))
				logWaits(r.Engine.CutOff(), func(text string, fields ...zap.Field) { d.log.Warn("cut off: "+text, fields...) }, r.cfg.Rank)
				return nil
			case err != nil && !errors.Is(err, os.ErrClosed):
				return fmt.Errorf("rank %d: %w", r.cfg.Rank, err)
			}
			return nil
		})
	}
	return engines.Wait()
}
