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

// phase is how far the daemon is, as /-/ready tells.
type phase struct{ atomic.Int32 }

const (
	starting int32 = iota
	serving
	stopping
)

var (
	errStarting = errors.New("it starts")
	errStopping = errors.New("it stops, and lets messages that are under way end")
)

// ready says why messages cannot be exchanged, or nil.
func (p *phase) ready() error {
	switch p.Load() {
	case starting:
		return errStarting
	case stopping:
		return errStopping
	}
	return nil
}

// bindWeb binds the HTTP server's address. It returns nil if there is to be none. An
// address that cannot be had is no reason not to run if nobody has asked for it: several
// daemons of a host have the same default.
func (d *Daemon) bindWeb(askedFor bool) (*web.Server, error) {
	h := &d.cfg.HTTP
	if h.Listen == "" {
		return nil, nil
	}
	s, err := web.Listen(web.Options{
		Listen: h.Listen, Config: h.WebConfig, Pprof: h.Pprof, Ready: d.phase.ready,
		Log: slog.New(zapslog.NewHandler(d.log.Core())),
	})
	var taken *web.ListenError
	if errors.As(err, &taken) && !askedFor {
		d.log.Warn("there is no HTTP, and there are no metrics: " + err.Error())
		return nil, nil
	}
	return s, err
}

// webTask is the HTTP server while it runs. It outlives everything else, so that
// whoever asks while messages are ending is told so.
type webTask struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended is closed
}

// startWeb starts to answer requests, if there is a server.
func (d *Daemon) startWeb(ctx context.Context) (*webTask, error) {
	t := &webTask{ended: make(chan struct{})}
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if d.web == nil {
		close(t.ended)
		return t, nil
	}
	src := d.metricsSource()
	registry, err := metrics.NewRegistry(src)
	if err != nil {
		t.cancel()
		return nil, err
	}
	d.web.Handle("GET /metrics", metrics.Handler(registry, zap.NewStdLog(d.log)))
	page := statuspage.New(d.Status, statuspage.Options{Latency: sendTimes(src.Ranks), Recent: d.recent.Recent})
	d.web.Handle("GET /{$}", page)
	d.web.Handle("GET /status.json", page)
	d.web.HandleStreams("GET /events", page)
	var looking sync.WaitGroup
	looking.Go(func() { page.Run(ctx) })
	go func() {
		defer close(t.ended)
		t.err = d.web.Serve(ctx)
		t.cancel() // also if it has failed
		looking.Wait()
	}()
	return t, nil
}

// sendTimes tells the status page how long sends take.
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

// recentLines is how many warnings and errors the status page shows.
const recentLines = 50

// keepRecent has the log's last warnings and errors kept for the status page.
func (d *Daemon) keepRecent() {
	d.recent = statuspage.NewLog(recentLines)
	d.log = d.log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewTee(c, d.recent.Core(zapcore.WarnLevel))
	}))
}

// watch returns when ctx is done, or with an error when the server has failed.
func (t *webTask) watch(ctx context.Context) error {
	select {
	case <-t.ended:
		return t.err
	case <-ctx.Done():
		return nil
	}
}

// stop ends the server. Its error was told by watch.
func (t *webTask) stop() {
	t.cancel()
	<-t.ended
}

// webURL is where the HTTP server is, or "" if there is none.
func (d *Daemon) webURL() string {
	if d.web == nil {
		return ""
	}
	return d.web.URL()
}
