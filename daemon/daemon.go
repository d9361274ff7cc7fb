package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage"
	"github.com/zrlmpi/zrlmpid/daemon/web"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Options configures a daemon in addition to its configuration file.
type Options struct {
	// Log is the log; nil discards all lines.
	Log *zap.Logger
	// LostLogLines returns the number of lines that Log has lost; nil means that Log loses no lines.
	LostLogLines func() uint64
	// LogTail returns the most recent lines of Log; nil means that they are not available.
	LogTail func() []byte
	// ReadyWriter receives one line when the daemon is ready; nil discards it. The daemon does not wait for the write.
	ReadyWriter io.Writer
	// ConfigSource names the file or other source of the configuration.
	ConfigSource string
	// LoadConfig rereads the configuration for a reload; nil means that the source cannot be reread.
	LoadConfig func() (*config.Config, error)
	// ReloadSignals delivers a signal, such as SIGHUP, for each requested reload.
	ReloadSignals <-chan os.Signal
	// Watch detects changes of the configuration's files, each of which causes a reload; nil disables this.
	Watch *ConfigWatch
	// Level is the level of Log, which a reload can change; nil means that a reload cannot change it.
	Level *zap.AtomicLevel
	// JobDirectory is the directory of the ranks' job, or empty without a job.
	JobDirectory string
	// FailureLimit is the time for which a stand-in's kernel may fail without a success before the daemon exits with
	// the kernel's error; 0 means no limit. A daemon with a limit also exits if a kernel cannot run at all.
	FailureLimit time.Duration
	// StateDirectory holds the state that a host saves for the process that replaces it. If StateDirectory is empty,
	// the daemon saves no state.
	StateDirectory string
}

// Daemon is a daemon, whether running or not yet started.
type Daemon struct {
	cfg      *config.Config // at startup; current is the most recently loaded one
	opts     Options
	log      *zap.Logger
	ranks    []*localRank // in rank order
	rankMap  *rankmap.Map
	observer *Observer
	// recording is nil unless packets are recorded.
	recording    *flightRecorder
	failures     failureLog
	attachServer *attach.Server
	// access reflects the most recently loaded configuration.
	access  atomic.Pointer[access]
	denials denials
	// attachedBytes is the maximum number of bytes that the operations of all attached programs may use together.
	attachedBytes int64
	started       time.Time
	web           *web.Server     // nil if HTTP is disabled
	recentLog     *statuspage.Log // nil if HTTP is disabled
	phase         phase
	reloadState
}

// New prepares a daemon without binding or starting anything. The error joins all problems found in cfg.
func New(cfg *config.Config, opts Options) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	daemon := &Daemon{cfg: cfg, opts: opts, log: opts.Log}
	daemon.current.Store(cfg)
	daemon.loadedAt = time.Now()
	if opts.Watch != nil {
		opts.Watch.addFiles(cfg)
	}
	if daemon.log == nil {
		daemon.log = zap.NewNop()
	}
	if cfg.HTTP.Listen != "" {
		daemon.keepRecentLog()
	}
	var errs []error
	for _, rank := range cfg.LocalRanks() {
		r, err := newLocalRank(daemon.log, cfg, rank, opts.FailureLimit)
		r.Directory = daemon.opts.JobDirectory
		errs = append(errs, err)
		daemon.ranks = append(daemon.ranks, r)
	}
	slices.SortFunc(daemon.ranks, func(a, b *localRank) int { return cmp.Compare(a.cfg.Rank, b.cfg.Rank) })
	m, err := node.RankMap(cfg)
	errs = append(errs, err)
	daemon.rankMap = m
	daemon.observer = newObserver(daemon.log, func(rank, peer int) protocol.Profile {
		if r := daemon.findRank(rank); r != nil && peer >= 0 && peer < len(r.Links()) {
			return r.Links()[peer].Profile
		}
		return protocol.CloudFPGA
	})
	daemon.recording = newRecording(daemon)
	daemon.observer.onFailure = daemon.noteFailure
	allowed, err := newAccess(cfg, os.Getegid())
	errs = append(errs, err)
	daemon.access.Store(allowed)
	daemon.attachedBytes = attachedBytes(cfg, available)
	daemon.attachServer = attach.NewServer(daemon, attach.Options{
		Memory:         daemon.attachedBytes,
		Access:         func(rank int) attach.Access { return daemon.access.Load().ranks[rank] },
		Oversubscribed: slices.ContainsFunc(daemon.ranks, func(r *localRank) bool { return r.Oversubscribed() }),
		Log:            daemon.onProgramEvent,
		Explain:        daemon.explain,
	})
	return daemon, errors.Join(errs...)
}

// findRank returns the local rank with the given number, or nil.
func (d *Daemon) findRank(rank int) *localRank {
	for _, r := range d.ranks {
		if r.cfg.Rank == rank {
			return r
		}
	}
	return nil
}

// Run runs the daemon until ctx is done and all tasks have exited. It returns an error if an address cannot be
// bound or a task fails. Run may be called only once.
func (d *Daemon) Run(ctx context.Context) (err error) {
	// The log writer exits last.
	logCtx, stopLog := context.WithCancel(context.WithoutCancel(ctx))
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		d.observer.run(logCtx)
	}()
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		if d.recording != nil {
			d.recording.run(logCtx)
		}
	}()
	defer func() {
		stopLog()
		<-recorded
		<-logged
	}()

	open, err := d.bindSockets()
	if err != nil {
		return err
	}
	for _, warning := range d.cfg.Warnings() {
		d.log.Warn(warning)
	}
	if d.recording != nil {
		d.recording.openSpool()
	}
	if err := d.startEngines(); err != nil {
		return errors.Join(err, d.closeSockets(open))
	}
	d.started = time.Now()
	if d.opts.JobDirectory != "" {
		for _, r := range d.ranks {
			defer r.Serve().Close()
		}
	}
	http, err := d.startWeb(ctx)
	if err != nil {
		return errors.Join(err, d.closeSockets(open))
	}
	defer http.stop()
	defer d.watchdog()()
	err = d.serve(ctx, open, http)
	return errors.Join(err, d.stopEngines())
}

// listeners holds the listeners on the daemon's own sockets. Each is nil if it is disabled.
type listeners struct{ control, attach net.Listener }

// bindSockets binds the sockets of all local ranks and the daemon's own sockets. On error, it closes those already
// bound.
func (d *Daemon) bindSockets() (open listeners, err error) {
	for _, r := range d.ranks {
		if err := r.Bind(d.rankMap); err != nil {
			return open, errors.Join(err, d.closeSockets(open))
		}
		if err := r.PathError(); err != nil {
			d.log.Warn("AF_XDP is not used: the kernel's socket is", zap.Int("rank", r.cfg.Rank), zap.Error(err))
		}
	}
	for _, s := range []struct {
		path     string
		mode     fs.FileMode
		listener *net.Listener
	}{{d.cfg.ControlSocket(), fs.FileMode(d.cfg.Control.Mode), &open.control},
		{d.attachSocket(), attachMode(d.cfg), &open.attach}} {
		if s.path == "" {
			continue
		}
		if *s.listener, err = control.Listen(s.path, s.mode); err != nil {
			return open, errors.Join(err, d.closeSockets(open))
		}
	}
	if d.web, err = d.bindWeb(d.cfg.IsHTTPExplicit()); err != nil {
		return open, errors.Join(err, d.closeSockets(open))
	}
	return open, nil
}

// attachSocket returns the path of the socket to which programs attach, or "" without host ranks.
func (d *Daemon) attachSocket() string {
	for _, r := range d.ranks {
		if r.port != nil || r.cfg.Run == config.RunHost {
			return d.cfg.AttachSocket()
		}
	}
	return ""
}

// closeSockets closes all bound sockets after a failed start.
func (d *Daemon) closeSockets(open listeners) error {
	var errs []error
	if d.web != nil {
		errs = append(errs, d.web.Close())
	}
	for _, l := range []net.Listener{open.control, open.attach} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	for _, r := range d.ranks {
		if r.Engine == nil {
			errs = append(errs, r.Close(context.Background()))
		}
	}
	return errors.Join(append(errs, d.stopEngines())...)
}

// startEngines starts the engines of all local ranks. A rank whose state cannot be kept across restarts still starts;
// the daemon only logs a warning.
func (d *Daemon) startEngines() error {
	for _, rank := range d.ranks {
		if d.opts.StateDirectory != "" {
			if err := rank.KeepState(d.opts.StateDirectory); err != nil {
				d.log.Warn("state not kept", zap.Int("rank", rank.cfg.Rank), zap.Error(err))
			}
		}
		rank.onFailure = func(err error) { d.kernelFailed(rank, err) }
		rank.Describe = func(s *state.RankInfo, depth state.Detail) {
			rank.addDetails(s, depth, d.attachServer.AttachedPrograms())
		}
		if err := rank.start(d.newRankObserver(rank), d.log, d.explain); err != nil {
			return fmt.Errorf("rank %d: %w", rank.cfg.Rank, err)
		}
	}
	return nil
}

// kernelFailed fails all pending operations between this process's hosts and a stand-in with a failed kernel.
func (d *Daemon) kernelFailed(failed *localRank, err error) {
	if !errors.Is(err, mpe.ErrTruncated) { // a failed receive in the stand-in, recorded elsewhere
		d.noteFailure(failed.cfg.Rank, -1, state.OperationKernel, err)
	}
	for _, r := range d.ranks {
		if r.port != nil {
			r.Engine.PeerFailed(failed.cfg.Rank, err)
		}
	}
}

// serve runs the tasks until ctx is done or a task fails.
func (d *Daemon) serve(ctx context.Context, open listeners, http *webTask) error {
	stop := ctx
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return http.waitFailed(ctx) })
	for _, r := range d.ranks {
		if r.kernel != nil {
			tasks.Go(func() error {
				err := r.runKernel(ctx, d.log)
				if d.opts.FailureLimit > 0 {
					return err
				}
				return nil
			})
		}
	}
	watcher := &waitWatcher{log: d.log, ranks: d.ranks, now: time.Now, logged: make(map[waitKey]loggedWait)}
	tasks.Go(func() error { return watcher.run(ctx) })
	if open.attach != nil {
		tasks.Go(func() error {
			if err := d.attachServer.Serve(ctx, open.attach); err != nil {
				return fmt.Errorf("attach socket %s: %w", d.attachSocket(), err)
			}
			return nil
		})
	}
	if open.control != nil {
		server := control.NewServer(d, zap.NewStdLog(d.log))
		tasks.Go(func() error {
			if err := server.Serve(ctx, open.control); err != nil {
				return fmt.Errorf("control socket %s: %w", d.cfg.ControlSocket(), err)
			}
			return nil
		})
	}
	tasks.Go(func() error {
		if err := d.reportReady(ctx); err != nil {
			return err
		}
		d.examineHost()
		d.reloadOnDemand(ctx)
		return nil
	})
	// Without this task, a daemon that has no other tasks would exit at once.
	tasks.Go(func() error {
		select {
		case <-stop.Done():
		case <-ctx.Done(): // a task failed
		}
		d.beginStop()
		end()
		return nil
	})
	return tasks.Wait()
}

// reportReady reports that the daemon is ready once the control socket answers.
func (d *Daemon) reportReady(ctx context.Context) error {
	if path := d.cfg.ControlSocket(); path != "" {
		client := control.NewClient(path)
		defer client.Close()
		_, err := client.Status(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("control socket %s: no answer: %w", path, err)
		}
	}
	d.phase.CompareAndSwap(starting, serving)
	d.log.Info("zrlmpid ready", zap.Int("local_ranks", len(d.ranks)), zap.Int("cluster_size", len(d.cfg.Ranks)),
		zap.String("version", version.String()), zap.String("config", d.opts.ConfigSource), zap.String("http", d.webURL()))
	d.notifyReady()
	if d.opts.ReadyWriter != nil {
		go func() { // the writer may block, for example on a pipe without a reader
			if _, err := io.WriteString(d.opts.ReadyWriter, d.readyLine()+"\n"); err != nil {
				d.log.Warn("ready line not written", zap.Error(err))
			}
		}()
	}
	return nil
}

// maxReadyRanks is the maximum number of ranks in the ready line.
const maxReadyRanks = 8

// readyLine returns a line with the addresses of the first maxReadyRanks local ranks.
func (d *Daemon) readyLine() string {
	var b strings.Builder
	b.WriteString("ready ")
	for i, rank := range d.ranks {
		if i == maxReadyRanks && len(d.ranks) > maxReadyRanks+1 {
			fmt.Fprintf(&b, "and %d more ranks, ", len(d.ranks)-maxReadyRanks)
			break
		}
		fmt.Fprintf(&b, "rank %d %s ", rank.cfg.Rank, rank.cfg.Run)
		if rank.kernel != nil {
			fmt.Fprintf(&b, "%v ", rank.kernel)
		}
		fmt.Fprintf(&b, "%v, ", rank.cfg.Address)
	}
	return b.String() + "control " + cmp.Or(d.cfg.ControlSocket(), "none") + ", attach " +
		cmp.Or(d.attachSocket(), "none") +
		", http " + cmp.Or(d.webURL(), "none")
}
