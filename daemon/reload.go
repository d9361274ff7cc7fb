package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/node"
)

// reloadState tracks the configurations loaded by a daemon.
type reloadState struct {
	// current is the most recently loaded configuration.
	current atomic.Pointer[config.Config]
	// reloading is held during a reload.
	reloading sync.Mutex

	reloadMu   sync.Mutex
	lastFailed bool
	loadedAt   time.Time
}

// lastReload reports whether the last reload succeeded, and returns the time of the last successful one.
func (r *reloadState) lastReload() (good bool, last time.Time) {
	r.reloadMu.Lock()
	defer r.reloadMu.Unlock()
	return !r.lastFailed, r.loadedAt
}

// ErrNotServing is returned for a reload while the daemon is starting or stopping.
var ErrNotServing = errors.New("zrlmpid is starting or stopping")

// errNoSource is returned for a reload if the configuration came from a source that cannot be read again.
var errNoSource = errors.New("cannot be read a second time: restart zrlmpid")

// RefusedError reports that the daemon refused a reload.
type RefusedError struct {
	// Restart lists the changes that need a restart. It is empty if Err is non-nil.
	Restart []string
	Err     error
}

// Error returns the message of Err or, if Err is nil, a message with one line for each change that needs a restart.
func (e *RefusedError) Error() string {
	const text = "configuration refused, the previous one stays in effect"
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": these changes need a restart:\n  " + strings.Join(e.Restart, "\n  ")
}

// Unwrap returns Err, or node.ErrRestart if Err is nil.
func (e *RefusedError) Unwrap() error {
	if e.Err == nil {
		return node.ErrRestart
	}
	return e.Err
}

// Reload applies cfg to the running daemon. The error is a *RefusedError; in that case, the daemon is unchanged.
// Messages in progress complete under the previous configuration. The daemon owns cfg after the call.
func (d *Daemon) Reload(cfg *config.Config) error {
	_, err := d.applyReload(func() (*config.Config, error) { return cfg, nil })
	return err
}

// applyReload applies the configuration returned by load, as Reload does, and returns the changes.
func (d *Daemon) applyReload(load func() (*config.Config, error)) ([]config.Change, error) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	defer d.notifyReloading()()
	changes, err := d.tryReload(load)
	d.reloadMu.Lock()
	if d.lastFailed = err != nil; err == nil {
		d.loadedAt = time.Now()
	}
	d.reloadMu.Unlock()
	switch refused, _ := errors.AsType[*RefusedError](err); {
	case refused != nil && refused.Err == nil:
		d.log.Error("configuration refused, a restart is needed",
			zap.String("config", d.opts.ConfigSource), zap.Strings("restart", refused.Restart))
	case err != nil:
		d.log.Error("configuration refused", zap.String("config", d.opts.ConfigSource), zap.Error(errors.Unwrap(err)))
	default:
		d.log.Info("configuration reloaded", zap.String("config", d.opts.ConfigSource), zap.Stringers("changes", changes))
		for _, warning := range d.current.Load().Warnings() {
			d.log.Warn(warning)
		}
	}
	return changes, err
}

// tryReload applies a configuration in full or not at all: whatever can fail is done before the first change.
func (d *Daemon) tryReload(load func() (*config.Config, error)) ([]config.Change, error) {
	if d.phase.Load() != serving {
		return nil, &RefusedError{Err: ErrNotServing}
	}
	cfg, err := load()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, &RefusedError{Err: err}
	}
	changes, err := config.Diff(d.current.Load(), cfg)
	if err != nil {
		return nil, &RefusedError{Err: err}
	}
	apply, err := d.prepareReload(cfg, changes)
	if err != nil {
		return nil, err
	}
	for _, f := range apply {
		f()
	}
	d.current.Store(cfg)
	return changes, nil
}

// prepareReload returns the functions that apply a valid configuration. These functions cannot fail.
func (d *Daemon) prepareReload(cfg *config.Config, changes []config.Change) (apply []func(), err error) {
	var restart []string
	for _, c := range changes {
		if !d.canReload(cfg, c) {
			restart = append(restart, describeRestart(c))
		}
	}
	if len(restart) > 0 { // do not bother to prepare the links
		return nil, &RefusedError{Restart: restart}
	}
	m, err := node.RankMap(cfg)
	if err != nil {
		return nil, &RefusedError{Err: err}
	}
	for _, r := range d.ranks {
		f, err := r.Prepare(cfg, m)
		if errors.Is(err, node.ErrRestart) {
			restart = append(restart, strings.Split(err.Error(), "\n")...)
		} else if err != nil {
			return nil, &RefusedError{Err: err}
		}
		apply = append(apply, f)
	}
	if len(restart) > 0 {
		return nil, &RefusedError{Restart: slices.Compact(restart)}
	}
	allowed, err := newAccess(cfg, os.Getegid())
	if err != nil {
		return nil, &RefusedError{Err: err}
	}
	apply = append(apply, func() { d.access.Store(allowed) })
	if d.opts.Level != nil {
		level, err := zapcore.ParseLevel(cfg.Log.Level)
		if err != nil { // cannot happen after validation
			return nil, &RefusedError{Err: err}
		}
		apply = append(apply, func() { d.opts.Level.SetLevel(level) })
	}
	return apply, nil
}

// canReload reports whether a key may change while the daemon runs. It returns true for all keys of links, because
// node.Rank.Prepare checks the resulting links.
func (d *Daemon) canReload(cfg *config.Config, change config.Change) bool {
	switch {
	case change.Rank == config.NoRank && strings.HasPrefix(change.Key, "defaults."):
		return true
	case change.Rank != config.NoRank && strings.HasPrefix(change.Key, "link."):
		return true
	case change.Rank != config.NoRank && strings.HasPrefix(change.Key, "allow."):
		return attachMode(cfg) == attachMode(d.cfg)
	case change.Rank != config.NoRank:
		return change.Key == "address" && d.findRank(change.Rank) == nil
	}
	switch change.Key {
	case "stop_timeout", "control.allow.users", "control.allow.groups":
		return true
	case "log.level":
		return d.opts.Level != nil
	case "tls.certificate", "tls.key", "tls.authority":
		return d.cfg.TLS != nil && cfg.TLS != nil
	}
	return false
}

// describeRestart describes a change and, unless it is obvious, the reason why the change needs a restart.
func describeRestart(change config.Change) string {
	switch {
	case change.Rank == config.NoRank && change.Key == "ranks":
		return fmt.Sprintf("%v (attached programs and other ranks rely on the number of ranks)", change)
	case change.Rank != config.NoRank && strings.HasPrefix(change.Key, "allow."):
		return fmt.Sprintf("%v (the first or last allow of all ranks changes the mode of the attach socket)", change)
	case strings.HasPrefix(change.Key, "collectives."):
		return fmt.Sprintf("%v (all ranks must have the same)", change)
	}
	return change.String()
}

// reloadOnDemand reloads the configuration for each signal and for each change of its files that opts.Watch detects,
// and logs the result, until ctx is done.
func (d *Daemon) reloadOnDemand(ctx context.Context) {
	var polls <-chan time.Time
	watch := d.opts.Watch
	if watch != nil {
		ticker := time.NewTicker(watch.interval)
		defer ticker.Stop()
		polls = ticker.C
	}
	for {
		select {
		case <-d.opts.ReloadSignals:
		case <-polls:
			if !watch.poll(d.current.Load()) {
				continue
			}
		case <-ctx.Done():
			return
		}
		_, _ = d.ReloadFromSource() // ReloadFromSource logs the result
	}
}

// ReloadFromSource reloads the configuration from its source.
func (d *Daemon) ReloadFromSource() (control.ReloadResult, error) {
	load := d.opts.LoadConfig
	if load == nil {
		load = func() (*config.Config, error) { return nil, fmt.Errorf("%s: %w", d.opts.ConfigSource, errNoSource) }
	}
	if watch := d.opts.Watch; watch != nil {
		watch.beginLoad(d.current.Load())
	}
	changes, err := d.applyReload(load)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		e := control.Errorf(control.Refused, "%s", err)
		e.Restart = refused.Restart
		return control.ReloadResult{}, e
	}
	answer := control.ReloadResult{Config: d.opts.ConfigSource, Changes: make([]control.Change, len(changes))}
	for i, c := range changes {
		answer.Changes[i] = control.Change{Key: c.Key, From: c.From, To: c.To, Text: c.String()}
		if c.Rank != config.NoRank {
			answer.Changes[i].Rank = new(c.Rank)
		}
	}
	return answer, nil
}
