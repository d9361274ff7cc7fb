package node

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/udp"
)

// Report is the state that a rank in a job reports to tools.
type Report struct {
	// UID is the user of the answering process, as reported by the kernel. It is not part of the answer.
	UID     int       `json:"-"`
	PID     int       `json:"-"`
	Started time.Time `json:"started"`
	state.RankInfo
	Engine state.Engine `json:"engine"`
	// Drops is a copy of RankInfo.SocketDrops.
	Drops *uint64 `json:"socket_drops,omitempty"`
	// Cluster lists all ranks, in rank order.
	Cluster []state.Member `json:"cluster"`
	// Operations is the number of pending operations.
	Operations int `json:"operations"`
	// RankCounters and Peers hold counters, and Times holds the phases of messages if they are recorded. They are set
	// only in reports for metrics.
	RankCounters state.RankCounters   `json:"counters,omitzero"`
	Peers        []state.PeerCounters `json:"peer_counters,omitempty"`
	Times        phases.Times         `json:"times,omitzero"`
}

// Serve answers tools until the returned Closer is closed. The rank must have been started. If the rank cannot be
// served, for instance because it is not in a job, it works as usual and the Closer is a no-op.
func (r *Rank) Serve() io.Closer {
	if r.Directory == "" {
		return io.NopCloser(nil)
	}
	started := time.Now()
	c, err := jobs.Serve(r.Directory, r.Self.Rank, func(ctx context.Context, q query.Request) query.Response {
		return r.handleQuery(ctx, started, q)
	})
	if err != nil {
		return io.NopCloser(nil)
	}
	return c
}

// handleQuery is the query.Handler for a rank that belongs to a job.
func (r *Rank) handleQuery(ctx context.Context, started time.Time, request query.Request) query.Response {
	switch {
	case request.Kind == query.Status:
		return query.Response{Document: r.makeReport(started, false)}
	case request.Kind == query.Metrics:
		return query.Response{Document: r.makeReport(started, true)}
	case request.Kind == query.Reports:
		return query.Response{Document: state.Reports{Results: r.AskReports(ctx, r.remoteRanks())}}
	case request.Kind == query.Reset:
		return query.Response{Err: r.Engine.Reset(request.Peer)}
	case request.Kind == query.Packets && r.FlightRecorder == nil:
		return query.Response{Err: errors.New("the rank records no packets")}
	case request.Kind == query.Packets:
		return query.Response{Stream: r.followPackets}
	}
	return query.Unknown(request)
}

// Info returns the state of the rank without the state of its engine.
func (r *Rank) Info(depth state.Detail) state.RankInfo {
	rankInfo := state.RankInfo{
		Rank: r.Self.Rank, Role: r.Self.Run, Address: r.Self.Address.String(), Kernel: r.Self.Kernel.String(),
	}
	if u := r.sockets.udp; u != nil {
		rankInfo.ReceiveBufferRequested, rankInfo.ReceiveBuffer = u.ReceiveBuffer()
		if n, known := u.Drops(); known {
			rankInfo.SocketDrops = &n
		}
		rankInfo.Offload = offloadState(u.Offload())
		rankInfo.Path = r.pathState()
	}
	if depth == state.DetailFull {
		rankInfo.Transports, rankInfo.Oversubscribed = r.sockets.transports(), r.Oversubscribed()
		if m := r.sockets.shm; m != nil {
			rankInfo.Ring = ringSize(r.Config)
			rankInfo.Shared, rankInfo.SingleCopy = m.Sharing()
		}
	}
	if r.Describe != nil {
		r.Describe(&rankInfo, depth)
	}
	return rankInfo
}

func offloadState(o udp.Offload) *state.Offload {
	s := &state.Offload{Batches: o.Batches, Segmentation: o.Segments, Coalescing: o.Coalesces, Disabled: o.Off}
	for _, refused := range o.Refused {
		s.Refused = append(s.Refused, state.OffloadRefused{Peer: refused.Peer, Error: refused.Err.Error()})
	}
	return s
}

// pathState describes the path of the rank's datagrams, or returns nil if only the kernel's socket is configured.
func (r *Rank) pathState() *state.Path {
	if r.pathError != nil {
		return &state.Path{Error: r.pathError.Error()}
	}
	return r.sockets.udp.Path()
}

// State returns the state of the rank.
func (r *Rank) State() state.Rank {
	rank := state.Rank{RankInfo: r.Info(state.DetailFull), Engine: r.Engine.Snapshot()}
	links := r.Links()
	for i := range rank.Engine.Peers {
		peer := &rank.Engine.Peers[i]
		peer.Transport = links[peer.Rank].Transport
		if c := r.sockets.tcp; c != nil && peer.Transport == state.TransportTCP && peer.NetworkError == "" {
			if fault := c.TLSFault(peer.Rank); fault != nil {
				peer.NetworkError = fault.Error()
			}
		}
	}
	return rank
}

// publicState returns the encoded state that other ranks may read.
func (r *Rank) publicState() []byte {
	s := r.State()
	s.Kernel = r.Self.Kernel.Name // without the path of a program
	if r.Describe == nil {
		s.Attached = []state.Program{{PID: os.Getpid()}}
	}
	return state.PublicOf(&s).Encode()
}

// makeReport makes the rank's report. Only a report for metrics contains the counters and the phases, which no other
// tool uses.
func (r *Rank) makeReport(started time.Time, metrics bool) *Report {
	s := r.State()
	report := &Report{Started: started, RankInfo: s.RankInfo, Engine: s.Engine,
		Cluster: make([]state.Member, len(r.Config.Ranks))}
	report.Drops = report.SocketDrops
	links := r.Links()
	for i := range r.Config.Ranks {
		c := &r.Config.Ranks[i]
		m := state.Member{Rank: c.Rank, Address: c.Address.String(), Kind: c.Peer}
		if c.Rank != r.Self.Rank {
			m.Profile, m.Transport = state.ProfileOf(links[c.Rank].Profile), links[c.Rank].Transport
		}
		report.Cluster[c.Rank] = m
	}
	r.Engine.Counters(func(c *state.RankCounters) {
		report.Operations += c.Posted + c.Probes + c.SharedWaits
		if !metrics {
			return
		}
		report.RankCounters = *c
		if r.PhaseRecorder != nil {
			report.Times.Classes, report.Times.Peers = r.PhaseRecorder.Classes(), map[int]phases.PeerTimes{}
		}
	}, func(counters *state.PeerCounters) {
		report.Operations += counters.QueuedSends + counters.InFlight + counters.Receiving
		if !metrics {
			return
		}
		report.Peers = append(report.Peers, *counters)
		if r.PhaseRecorder != nil && r.PhaseRecorder.HasSeries(counters.Rank) && r.PhaseRecorder.AssignSeries(counters.Rank) {
			report.Times.Peers[counters.Rank] = r.PhaseRecorder.Peer(counters.Rank)
		}
	})
	return report
}
