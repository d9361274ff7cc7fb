package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// The daemon reports its state to the service manager through the socket named by NOTIFY_SOCKET, if set; see
// sd_notify(3).

const (
	// While the daemon drains pending messages at shutdown, it extends the service manager's timeout by
	// extendDuration every extendInterval.
	extendInterval = time.Second
	extendDuration = 5 * time.Second
)

// notify sends lines to the service manager.
func (d *Daemon) notify(lines ...string) {
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		d.log.Warn("service manager not notified", zap.Error(err))
	}
}

func (d *Daemon) notifyReady() { d.notify(systemd.SdNotifyReady, d.serviceStatus()) }

// serviceStatus returns the line about the daemon that "systemctl status" shows.
func (d *Daemon) serviceStatus() string {
	var b strings.Builder
	fmt.Fprintf(&b, "STATUS=%d of %d ranks are local:", len(d.ranks), len(d.cfg.Ranks))
	const most = 8
	for i, r := range d.ranks {
		if i == most {
			b.WriteString(" ...")
			break
		}
		fmt.Fprintf(&b, " %d (%s)", r.cfg.Rank, r.cfg.Run)
	}
	return b.String()
}

// notifyReloading notifies the service manager that a reload has started. The caller must call the returned function
// over when the reload ends.
func (d *Daemon) notifyReloading() (over func()) {
	if d.phase.Load() != serving { // READY=1 would end any other phase
		return func() {}
	}
	d.notify(systemd.SdNotifyReloading, strings.TrimSuffix(systemd.SdNotifyMonotonicUsec(), "\n"))
	return func() {
		if d.phase.Load() == serving {
			d.notifyReady()
		}
	}
}

func (d *Daemon) notifyStopping() {
	d.notify(systemd.SdNotifyStopping, "STATUS=stopping, waiting for messages to complete", extension())
}

func extension() string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendDuration.Microseconds()) }

// notifyDraining keeps extending the service manager's timeout until the returned function over is called.
func (d *Daemon) notifyDraining() (over func()) {
	return runEvery(extendInterval, func(context.Context) { d.notify(extension()) })
}

// watchdog pings the service manager's watchdog, if enabled, until the returned function over is called. It skips a
// ping whenever an engine does not respond.
func (d *Daemon) watchdog() (over func()) {
	limit, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("watchdog disabled", zap.Error(err))
	}
	if err != nil || limit <= 0 {
		return func() {}
	}
	return runEvery(limit/2, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit/2)
		defer cancel()
		if err := d.checkEngines(ctx); err == nil {
			d.notify(systemd.SdNotifyWatchdog)
		} else if !errors.Is(context.Cause(ctx), context.Canceled) {
			d.log.Error("watchdog not notified, an engine does not respond", zap.Error(err),
				zap.Duration("watchdog", limit))
		}
	})
}

// checkEngines returns nil if all engines respond.
func (d *Daemon) checkEngines(ctx context.Context) error {
	answers := make(chan error, len(d.ranks))
	for _, r := range d.ranks {
		go func() { answers <- r.Engine.Heartbeat(ctx) }()
	}
	var failed error
	for range cap(answers) {
		if err := <-answers; err != nil {
			failed = err
		}
	}
	return failed
}

// runEvery runs the function f at once and then at every interval, in a goroutine, until the returned function over is
// called.
func runEvery(interval time.Duration, f func(context.Context)) (over func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			f(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
