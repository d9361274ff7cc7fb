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

// The service manager is told by its socket, if there is one (NOTIFY_SOCKET), how far
// the daemon is: see sd_notify(3).

const (
	// extendEvery is how often the service manager is told that the daemon still lets
	// messages end, and extendBy for how long it is to wait each time.
	extendEvery = time.Second
	extendBy    = 5 * time.Second
)

// notify tells the service manager something. It can do without.
func (d *Daemon) notify(lines ...string) {
	if _, err := systemd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		d.log.Warn("the service manager cannot be told how zrlmpid is: " + err.Error())
	}
}

func (d *Daemon) notifyReady() { d.notify(systemd.SdNotifyReady, d.serviceStatus()) }

// serviceStatus is a line for "systemctl status".
func (d *Daemon) serviceStatus() string {
	var b strings.Builder
	fmt.Fprintf(&b, "STATUS=%d of %d ranks run here:", len(d.ranks), len(d.cfg.Ranks))
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

// notifyReloading tells of a reload, and what it returns, of its end.
func (d *Daemon) notifyReloading() (over func()) {
	if d.phase.Load() != serving { // which READY=1 would end
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
	d.notify(systemd.SdNotifyStopping, "STATUS=lets messages that are under way end", extension())
}

func extension() string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()) }

// notifyDraining has the service manager wait until what it returns is called.
func (d *Daemon) notifyDraining() (over func()) {
	return every(extendEvery, func(context.Context) { d.notify(extension()) })
}

// watchdog shows the service manager that all engines are alive, if it wants to know,
// until what it returns is called. That a goroutine runs which says so would mean
// nothing: it says so if each engine has answered.
func (d *Daemon) watchdog() (over func()) {
	limit, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("there is no watchdog: " + err.Error())
	}
	if err != nil || limit <= 0 {
		return func() {}
	}
	return every(limit/2, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, limit/2)
		defer cancel()
		if err := d.alive(ctx); err == nil {
			d.notify(systemd.SdNotifyWatchdog)
		} else if !errors.Is(context.Cause(ctx), context.Canceled) {
			d.log.Error("the watchdog is not told that all is well: "+err.Error(), zap.Duration("watchdog", limit))
		}
	})
}

// alive asks all engines for a sign of life.
func (d *Daemon) alive(ctx context.Context) error {
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

// every calls f now and every so often in a goroutine, until what it returns is called.
func every(interval time.Duration, f func(context.Context)) (over func()) {
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
