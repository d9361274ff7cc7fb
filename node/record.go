package node

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// RecordPhases makes the recorder of the phases of the rank's messages, which the rank's reports include. The caller
// must pass it on to the observer of Start. limit is the maximum number of peers with separate series.
func (r *Rank) RecordPhases(limit int) *phases.Recorder {
	peers := make([]phases.Peer, len(r.Links()))
	for _, remote := range r.Config.Ranks {
		peers[remote.Rank] = phases.Peer{Profile: r.Links()[remote.Rank].Profile.String(), Kind: string(remote.Peer)}
	}
	r.PhaseRecorder = phases.NewRecorder(r.Self.Rank, peers, limit)
	return r.PhaseRecorder
}

// RecordPackets makes the flight recorder of ranks of this process, none of which may have been started. It returns nil
// if the configuration disables recording.
func RecordPackets(cfg *config.Record, ranks []*Rank) *recorder.Recorder {
	if cfg.Memory == 0 {
		return nil
	}
	var plans []recorder.Plan
	for _, r := range ranks {
		plan := recorder.Plan{Rank: r.Self.Rank, Peers: make([]recorder.Peer, len(r.Links()))}
		for peer, l := range r.Links() {
			if peer != r.Self.Rank {
				plan.Peers[peer] = recorder.Peer{Recorded: cfg.SharedMemory || l.Transport != config.TransportSHM,
					Extended: l.Extended != nil}
			}
		}
		plans = append(plans, plan)
	}
	rec := recorder.New(int(cfg.Memory), plans)
	for _, r := range ranks {
		r.FlightRecorder = rec.Rank(r.Self.Rank)
	}
	return rec
}

// recordsPackets reports whether the flight recorder with the given configuration records packets of the rank.
func (r *Rank) recordsPackets(cfg *config.Record) bool {
	return len(r.Links()) > 1 && (cfg.SharedMemory || r.usesTransport(config.TransportUDP) ||
		r.usesTransport(config.TransportTCP))
}

// addresses returns a function that returns the addresses and the protocol of the rank's packets.
func (r *Rank) addresses() recorder.Addresses {
	addrs := make([]netip.AddrPort, len(r.Config.Ranks))
	for i := range r.Config.Ranks {
		addrs[r.Config.Ranks[i].Rank] = r.Config.Ranks[i].Address.AddrPort
	}
	return func(rank, peer int) (local, remote netip.AddrPort, proto pcapng.Proto) {
		proto = pcapng.UDP
		if r.Links()[peer].Transport == config.TransportTCP {
			proto = pcapng.TCP
		}
		return addrs[rank], addrs[peer], proto
	}
}

// followPackets writes the recorded packets of the rank, and then new ones as they are recorded, until ctx is done.
func (r *Rank) followPackets(ctx context.Context, to io.Writer) {
	now := time.Now()
	reader := r.FlightRecorder.Reader(r.addresses(), now)
	out := pcapng.NewWriter(to, recorder.FileOptions(fmt.Sprintf("packets of rank %d", r.Self.Rank)))
	// The error is not reported, because the tool itself notices the end of the stream.
	_ = reader.Follow(out, reader.Read(now), []recorder.Queues{{Rank: r.Self.Rank, Depths: r.Engine.Depths}},
		ctx.Done())
}

// jobObserver is the observer for a rank that belongs to a job.
type jobObserver struct {
	*phases.Recorder
	failures *failureRecorder // nil if failures are not recorded
}

func (jobObserver) Dropped(int, int, mpe.Drop) {}
func (jobObserver) TransportError(int, error)  {}

// Noted implements mpe.Observer.
func (o jobObserver) Noted(_, peer int, n mpe.Note) {
	if o.failures != nil && n.Event == state.EventUnreachable {
		o.failures.startRecord(peer, "connection to", &mpe.PeerLostError{Rank: peer, Event: n.Event})
	}
}

// CallFailed implements mpe.Observer.
func (o jobObserver) CallFailed(_ int, err error) {
	if o.failures != nil {
		o.failures.startRecord(-1, "collective call", err)
	}
}

// Done implements mpe.Observer.
func (o jobObserver) Done(_ int, status mpe.Status, err error) {
	o.Recorder.RecordMessage(&status, err)
	switch {
	case err == nil || o.failures == nil:
	case status.Send:
		o.failures.startRecord(status.Peer, "send to", err)
	default:
		o.failures.startRecord(status.Peer, "receive from", err)
	}
}
