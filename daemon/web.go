package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage"
	"github.com/zrlmpi/zrlmpid/daemon/web"
	"github.com/zrlmpi/zrlmpid/metrics"
)

// phase is the daemon's current phase, which /-/ready reports.
type phase struct{ atomic.Int32 }

const (
	starting int32 = iota
	serving
	stopping
)

var (
	errStarting = errors.New("starting")
	errStopping = errors.New("stopping, waiting for messages to complete")
)

// checkReady returns nil if messages can be exchanged, and the reason why they cannot otherwise.
func (p *phase) checkReady() error {
	switch p.Load() {
	case starting:
		return errStarting
	case stopping:
		return errStopping
	}
	return nil
}

// bindWeb binds the address of the HTTP server. It returns nil if HTTP is disabled, or if the address is in use and not
// explicit, because all daemons on a host share the same default address.
func (d *Daemon) bindWeb(explicit bool) (*web.Server, error) {
	h := &d.cfg.HTTP
	if h.Listen == "" {
		return nil, nil
	}
	server, err := web.Listen(web.Options{
		Listen: h.Listen, Config: h.WebConfig, Pprof: h.Pprof, Hosts: h.Hosts, Ready: d.phase.checkReady,
		Log: slog.New(zapslog.NewHandler(d.log.Core())),
	})
	if _, taken := errors.AsType[*web.ListenError](err); taken && !explicit {
		d.log.Warn("HTTP and metrics are disabled", zap.Error(err))
		return nil, nil
	}
	return server, err
}

// CheckFiles checks the TLS files of links and the files of the web configuration. It binds nothing.
func (d *Daemon) CheckFiles() error {
	for _, r := range d.ranks {
		if err := r.CheckTLS(); err != nil {
			return err // all ranks use the same files
		}
	}
	if file := d.cfg.HTTP.WebConfig; file != "" && d.cfg.HTTP.Listen != "" {
		return web.CheckConfig(file)
	}
	return nil
}

// webTask is the running HTTP server. The daemon stops it last, so that /-/ready can report the shutdown.
type webTask struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

// startWeb starts the HTTP server, if enabled.
func (d *Daemon) startWeb(ctx context.Context) (*webTask, error) {
	task := &webTask{done: make(chan struct{})}
	ctx, task.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if d.web == nil {
		close(task.done)
		return task, nil
	}
	src := d.metricsSource()
	registry, err := metrics.NewRegistry(src)
	if err != nil {
		task.cancel()
		return nil, err
	}
	d.web.Handle("GET /metrics", metrics.Handler(registry, zap.NewStdLog(d.log)))
	page := statuspage.New(d.Status, statuspage.Options{Latency: sendTimes(src.Ranks), Recent: d.recentLog.Recent})
	d.web.Handle("GET /{$}", page)
	d.web.Handle("GET /status.json", page)
	d.web.HandleStreams("GET /events", page)
	var sampling sync.WaitGroup
	sampling.Go(func() { page.Run(ctx) })
	go func() {
		defer close(task.done)
		task.err = d.web.Serve(ctx)
		task.cancel() // needed if Serve failed
		sampling.Wait()
	}()
	return task, nil
}

// sendTimes returns a function, for the status page, that returns the send durations for a rank and a peer.
func sendTimes(ranks []metrics.Rank) func(rank, peer int) (statuspage.Latency, bool) {
	byRank := make(map[int]*metrics.Rank)
	for i := range ranks {
		byRank[ranks[i].State().Rank] = &ranks[i]
	}
	return func(rank, peer int) (l statuspage.Latency, ok bool) {
		if r := byRank[rank]; r != nil {
			l.P50, l.P99, l.Messages, ok = r.SendTimes(peer)
		}
		return l, ok
	}
}

// maxRecentLines is the number of warnings and errors kept for the status page.
const maxRecentLines = 50

// keepRecentLog starts to collect the most recent warnings and errors in the log for the status page.
func (d *Daemon) keepRecentLog() {
	d.recentLog = statuspage.NewLog(maxRecentLines)
	d.log = d.log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewTee(c, d.recentLog.Core(zapcore.WarnLevel))
	}))
}

// waitFailed waits until ctx is done or the server fails. In the second case, it returns the server's error.
func (t *webTask) waitFailed(ctx context.Context) error {
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return nil
	}
}

// stop stops the server. waitFailed returns the server's error.
func (t *webTask) stop() {
	t.cancel()
	<-t.done
}

// webURL returns the URL of the HTTP server, or "" if HTTP is disabled.
func (d *Daemon) webURL() string {
	if d.web == nil {
		return ""
	}
	return d.web.URL()
}
