package daemon

import (
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/node"
)

var _ control.Backend = (*Daemon)(nil)

// Status implements control.Backend.
func (d *Daemon) Status() control.Status {
	s := control.Status{
		Version: control.Version(), PID: os.Getpid(), Config: d.opts.Source,
		Started: d.started, Uptime: time.Since(d.started).Seconds(), LostLogLines: d.lostLogLines(), HTTP: d.webURL(),
		Cluster: make([]control.Member, len(d.cfg.Ranks)), Failures: d.recentFailures(),
	}
	for _, r := range d.current.Load().Ranks {
		m := control.Member{Rank: r.Rank, Address: r.Address.String(), Kind: string(r.Peer), Role: string(r.Run)}
		if r.Run == config.RunStandin {
			m.Kernel = r.Kernel.String()
		}
		if l := d.linkTo(r.Rank); l != nil {
			m.Profile, m.Transport = l.Profile.String(), string(l.Transport)
		}
		s.Cluster[r.Rank] = m
	}
	attached := d.attached.Attached()
	for _, r := range d.ranks {
		local := r.status()
		for _, a := range attached {
			if a.Rank == local.Rank {
				local.Attached = append(local.Attached, control.Program{
					PID: a.PID, UID: a.UID, Seconds: time.Since(a.Since).Seconds(), Operations: a.Operations, Bytes: a.Bytes,
					Stopped: control.Stopped(a.PID),
				})
			}
		}
		s.Ranks = append(s.Ranks, local)
	}
	return s
}

// linkTo returns the link to a rank from the lowest other local rank, or nil.
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
		return nil, control.Errorf(control.Rank, "no local rank has run: host: add one to %s", d.opts.Source)
	}
	if r := d.local(rank); r != nil {
		return nil, control.Errorf(control.Rank, "rank %d is a stand-in with kernel %v: choose a rank with run: host", rank, r.kernel)
	}
	return nil, control.Errorf(control.Rank, "rank %d is not a local rank of this daemon: choose a rank with run: host", rank)
}

// Reset implements control.Backend.
func (d *Daemon) Reset(rank, peer int) error {
	if rank == control.AnyRank {
		port, err := d.Host(rank)
		if err != nil {
			return err
		}
		rank = port.Rank()
	}
	r := d.local(rank)
	if r == nil {
		return control.Errorf(control.Rank, "rank %d is not a local rank of this daemon: choose a local rank", rank)
	}
	return r.Engine.Reset(peer)
}
