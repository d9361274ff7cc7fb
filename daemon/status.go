package daemon

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var _ control.Backend = (*Daemon)(nil)

// Handle implements control.Backend.
func (d *Daemon) Handle(ctx context.Context, request query.Request) query.Response {
	switch request.Kind {
	case query.Status:
		return query.Response{Document: d.Status()}
	case query.Reports:
		return query.Response{Document: state.Reports{Results: d.askReports(ctx)}}
	case query.Support:
		return query.Response{Document: d.supportInfo()}
	case query.Reset:
		return query.Response{Err: d.reset(request.Rank, request.Peer)}
	case query.Reload:
		reloaded, err := d.ReloadFromSource()
		return query.Response{Document: reloaded, Err: err}
	}
	return query.Unknown(request)
}

// Status returns the state of the daemon.
func (d *Daemon) Status() state.Status {
	status := state.Status{
		Version: version.String(), PID: os.Getpid(), Config: d.opts.ConfigSource,
		Started: d.started, Uptime: time.Since(d.started).Seconds(), LostLogLines: d.lostLogLines(), HTTP: d.webURL(),
		Cluster: make([]state.Member, len(d.cfg.Ranks)), Failures: d.recentFailures(),
	}
	for _, rank := range d.current.Load().Ranks {
		member := state.Member{Rank: rank.Rank, Address: rank.Address.String(), Kind: rank.Peer, Role: rank.Run}
		if rank.Run == config.RunStandin {
			member.Kernel = rank.Kernel.String()
		}
		if l := d.linkTo(rank.Rank); l != nil {
			member.Profile, member.Transport = state.ProfileOf(l.Profile), l.Transport
		}
		status.Cluster[rank.Rank] = member
	}
	for _, r := range d.ranks {
		status.Ranks = append(status.Ranks, r.State())
	}
	return status
}

func (d *Daemon) supportInfo() control.Support {
	var support control.Support
	if d.opts.LogTail != nil {
		support.Log = string(d.opts.LogTail())
	}
	if r := d.recording; r != nil && r.spool != nil {
		support.Records = &control.Records{Directory: r.spool.Directory(), Size: r.spool.Size()}
		for _, f := range r.spool.Files() {
			support.Records.Files = append(support.Records.Files, control.Record{Name: f.Name, Bytes: f.Bytes})
		}
	}
	return support
}

// askReports asks remote ranks for their waits. Each remote rank is asked by the lowest local rank that has an
// extended-profile link to it, over that link.
func (d *Daemon) askReports(ctx context.Context) []state.AskResult {
	by := map[*localRank][]int{}
	asked := []state.AskResult{}
	for rank := range d.cfg.Ranks {
		if d.findRank(rank) != nil {
			continue
		}
		i := slices.IndexFunc(d.ranks, func(r *localRank) bool { return r.Links()[rank].Profile == protocol.Extended })
		if i < 0 {
			asked = append(asked, state.AskResult{Rank: rank, Reason: mpe.ErrNotExtended.Error()})
			continue
		}
		by[d.ranks[i]] = append(by[d.ranks[i]], rank)
	}
	var mu sync.Mutex
	var under sync.WaitGroup
	for r, ranks := range by {
		under.Go(func() {
			answers := r.AskReports(ctx, ranks)
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, answers...)
		})
	}
	under.Wait()
	slices.SortFunc(asked, func(a, b state.AskResult) int { return a.Rank - b.Rank })
	return asked
}

// linkTo returns the link over which the lowest other local rank reaches the given rank. It returns nil if there is no
// other local rank.
func (d *Daemon) linkTo(rank int) *node.Link {
	for _, r := range d.ranks {
		if r.cfg.Rank != rank {
			return &r.Links()[rank]
		}
	}
	return nil
}

// Host implements control.Backend.
func (d *Daemon) Host(rank int) (control.Port, error) {
	for _, r := range d.ranks {
		if r.port != nil && (rank == control.AnyRank || rank == r.cfg.Rank) {
			return r.port, nil
		}
	}
	if rank == control.AnyRank {
		return nil, control.Errorf(control.Rank, "no local rank has run: host: add one to %s", d.opts.ConfigSource)
	}
	if r := d.findRank(rank); r != nil {
		return nil, control.Errorf(control.Rank, "rank %d is a stand-in with kernel %v: choose a rank with run: host",
			rank, r.kernel)
	}
	return nil, control.Errorf(control.Rank, "rank %d is not a local rank of this daemon: choose a rank with run: host",
		rank)
}

// reset makes a local rank discard its state about a restarted peer, so that it may send to the peer again. AnyRank
// selects the rank returned by Host.
func (d *Daemon) reset(rank, peer int) error {
	if rank == control.AnyRank {
		port, err := d.Host(rank)
		if err != nil {
			return err
		}
		rank = port.Rank()
	}
	r := d.findRank(rank)
	if r == nil {
		return control.Errorf(control.Rank, "rank %d is not a local rank of this daemon: choose a local rank", rank)
	}
	return r.Engine.Reset(peer)
}
