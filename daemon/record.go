package daemon

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/internal/spool"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// flightRecorder combines the recorder of the daemon's packets with the writer of record files.
type flightRecorder struct {
	*recorder.Recorder
	daemon *Daemon
	spool  *spool.Spool // nil if no records are written
	wake   chan struct{}

	mu      sync.Mutex
	limiter recorder.RateLimiter
	pending *pendingRecord
	// errorLogged is set if the last record could not be written, so that the error is logged only once.
	errorLogged bool
}

// pendingRecord describes a recording file that must be written because an operation of a rank failed.
type pendingRecord struct {
	name, reason string
	rank         *node.Rank
	peer         int
}

// newRecording returns the recorder of packets for the daemon's ranks, or nil if packets are not recorded.
func newRecording(daemon *Daemon) *flightRecorder {
	ranks := make([]*node.Rank, len(daemon.ranks))
	for i, r := range daemon.ranks {
		ranks[i] = r.Rank
	}
	rec := node.RecordPackets(&daemon.cfg.Record, ranks)
	if rec == nil {
		return nil
	}
	for _, r := range daemon.ranks {
		if k, ok := r.kernel.(standin.Simulated); ok {
			r.FlightRecorder.RecordCycles(k.Cycle)
		}
	}
	return &flightRecorder{Recorder: rec, daemon: daemon, wake: make(chan struct{}, 1)}
}

// CycleAt returns the simulation cycle reached by a local rank's role at time t, which must be within the last half
// second. It returns false if the role is not simulated or the cycle is unknown.
func (d *Daemon) CycleAt(rank int, t time.Time) (pcapng.Cycle, bool) {
	r := d.findRank(rank)
	if r == nil {
		return pcapng.Cycle{}, false
	}
	k, ok := r.kernel.(standin.Simulated)
	if !ok {
		return pcapng.Cycle{}, false
	}
	simulation, cycle, ok := k.CycleAt(t)
	return pcapng.Cycle{Rank: rank, Simulation: simulation, Cycle: cycle}, ok
}

const noRecords = "failure records are disabled"

// openSpool opens the spool directory for records. If this fails, it logs the error, and the daemon writes no records.
func (r *flightRecorder) openSpool() {
	dir := r.daemon.cfg.SpoolDirectory()
	if dir == "" {
		if s := &r.daemon.cfg.Record.Spool; s.Size > 0 && s.Directory == nil {
			r.daemon.log.Info(noRecords, zap.String("reason",
				"no control socket is configured, and record.spool.directory is not set"))
		}
		return
	}
	kind := spool.Kind{Suffix: recorder.Suffix, IsName: recorder.IsName}
	s, err := spool.Open(dir, kind, int64(r.daemon.cfg.Record.Spool.Size))
	if err != nil {
		r.daemon.log.Warn(noRecords, zap.String("directory", dir), zap.Error(err))
		return
	}
	r.spool = s
}

// requestRecord requests a record of a failure and returns the path of the record. It returns "" if there is no spool
// or the last record is too recent. All failures that occur before the record is written share it, including those
// caused by the same event. requestRecord does not block, because the caller may hold an engine's lock.
func (r *flightRecorder) requestRecord(now time.Time, rank, peer int, reason string) string {
	if r.spool == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil {
		if !r.limiter.Allow(now) {
			return ""
		}
		r.pending = &pendingRecord{recorder.RecordName(now, "", rank, peer), reason, r.daemon.findRank(rank).Rank, peer}
		r.wake <- struct{}{} // never blocks, as no record was pending
	}
	return r.spool.Path(r.pending.name)
}

// run writes records until ctx is done, and then the pending record, if any.
func (r *flightRecorder) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
			r.writePending()
		case <-ctx.Done():
			select {
			case <-r.wake:
				r.writePending()
			default:
			}
			return
		}
	}
}

// writePending writes the pending record once the rank's engine has processed the event that caused the failure.
func (r *flightRecorder) writePending() {
	r.mu.Lock()
	record := r.pending
	r.mu.Unlock()
	record.rank.AwaitEventEnd()
	r.mu.Lock()
	r.pending = nil
	r.mu.Unlock()
	now := time.Now()
	recorded := r.Reader(r.addresses(), now).Read(now)
	data, err := recorder.Encode(recorded, r.spool.Size(), now, r.comment("written because "+record.reason))
	if err == nil {
		err = r.spool.Write(record.name, data)
	}
	fields := []zap.Field{
		zap.Int("rank", record.rank.Self.Rank), rankField("peer", record.peer), zap.String("file", r.spool.Path(record.name)),
		zap.String("reason", record.reason),
	}
	switch {
	case err == nil:
		r.daemon.log.Info("failure record written",
			append(fields, zap.Int("packets", len(recorded.Units)), zap.Int("bytes", len(data)))...)
	case !r.errorLogged:
		r.daemon.log.Warn("failure record not written, further errors not logged until one succeeds",
			append(fields, zap.Error(err))...)
	}
	r.errorLogged = err != nil
}

// comment returns the comment that is stored in a recording file.
func (r *flightRecorder) comment(why string) string {
	text := fmt.Sprintf("last packets of the local ranks of zrlmpid %s, configuration %s", version.String(),
		r.daemon.opts.ConfigSource)
	if why != "" {
		text += ", " + why
	}
	return text
}

// profile returns the protocol profile to store with recorded packets: V09 if any link carries tags, otherwise
// CloudFPGA.
func (r *flightRecorder) profile() protocol.Profile {
	for _, rank := range r.daemon.ranks {
		for peer, l := range rank.Links() {
			if peer != rank.cfg.Rank && l.Profile == protocol.V09 {
				return protocol.V09
			}
		}
	}
	return protocol.CloudFPGA
}

// addresses returns a function that finds the addresses of ranks in the current configuration.
func (r *flightRecorder) addresses() recorder.Addresses {
	cfg := r.daemon.current.Load()
	addrs := make([]netip.AddrPort, len(cfg.Ranks))
	for i := range cfg.Ranks {
		addrs[cfg.Ranks[i].Rank] = cfg.Ranks[i].Address.AddrPort
	}
	return func(rank, peer int) (local, remote netip.AddrPort, proto pcapng.Proto) {
		proto = pcapng.UDP
		if l := r.daemon.findRank(rank); l.Links()[peer].Transport == config.TransportTCP {
			proto = pcapng.TCP
		}
		return addrs[rank], addrs[peer], proto
	}
}

// Capture implements control.Backend.
func (d *Daemon) Capture(ctx context.Context, req control.CaptureRequest, open func(protocol.Profile) io.Writer) error {
	r := d.recording
	if r == nil {
		return control.Errorf(control.Failed, "this daemon records no packets: set record.memory in %s to more than 0",
			d.opts.ConfigSource)
	}
	now := time.Now()
	reader := r.Reader(r.addresses(), now)
	recorded := reader.Read(now)
	if req.MaxAge > 0 {
		recorded = recorded.Since(now.Add(-req.MaxAge))
	}
	if !req.Follow {
		capture.Annotate(recorded.Units, now, r.profile())
		return recorder.Write(open(r.profile()), recorded, now, r.comment(""))
	}
	if req.MaxAge == 0 {
		recorded = recorder.Recording{}
	}
	if req.Duration > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, req.Duration)
		defer stop()
	}
	out := pcapng.NewWriter(open(r.profile()), recorder.FileOptions(r.comment("")))
	var queues []recorder.Queues
	for _, rank := range d.ranks {
		queues = append(queues, recorder.Queues{Rank: rank.cfg.Rank, Depths: rank.Engine.Depths})
	}
	return reader.Follow(out, recorded, queues, ctx.Done())
}
