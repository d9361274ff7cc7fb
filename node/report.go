package node

import (
	"encoding/json"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/waitreport"
)

// Report is the state of a rank of a job, as it answers the tools.
type Report struct {
	// PID is the process that has answered, as the kernel says, and UID its user. A rank says neither.
	PID     int       `json:"-"`
	UID     int       `json:"-"`
	Started time.Time `json:"started"`
	Rank    int       `json:"rank"`
	Role    string    `json:"role"`
	Address string    `json:"address"`
	// Kernel is what a stand-in runs.
	Kernel string `json:"kernel,omitempty"`
	// KernelHolds is what the role of its kernel holds messages up with, or empty.
	KernelHolds string   `json:"kernel_holds,omitempty"`
	Transports  []string `json:"transports"`
	// Buffer is the size of the UDP socket's receive buffer in bytes, of BufferRequested.
	Buffer          int              `json:"receive_buffer"`
	BufferRequested int              `json:"receive_buffer_requested"`
	Drops           uint64           `json:"socket_drops"`
	DropsKnown      bool             `json:"socket_drops_known"`
	Offload         *ReportedOffload `json:"offload,omitempty"`
	// Ring is the size of the ring to each peer with which the rank shares memory, Shared how many these are, and
	// SingleCopy with how many of them long messages are copied once.
	Ring           int  `json:"shm_ring"`
	Shared         int  `json:"shm_links"`
	SingleCopy     int  `json:"shm_single_copy"`
	Oversubscribed bool `json:"oversubscribed"`
	// Cluster are all ranks, in rank order.
	Cluster []ReportedPeer `json:"cluster"`
	Engine  mpe.Snapshot   `json:"engine"`
	// Operations is the number of pending operations.
	Operations int `json:"operations"`
	// Own and Peers are counters, and Times has the phases of messages, if they are recorded. They are for metrics
	// only.
	Own   mpe.RankCounters   `json:"counters,omitzero"`
	Peers []mpe.PeerCounters `json:"peer_counters,omitempty"`
	Times phases.Times       `json:"times,omitzero"`
}

// ReportedOffload is what the kernel does for the UDP socket.
type ReportedOffload struct {
	Batches      bool `json:"batches"`
	Segmentation bool `json:"segmentation"`
	Coalescing   bool `json:"coalescing"`
	Disabled     bool `json:"disabled"`
	// Refused has the kernel's error for each peer to which it has refused to send segments.
	Refused map[int]string `json:"refused,omitempty"`
}

// ReportedPeer is a rank of the cluster. Profile and Transport are those of the link to it; empty for the rank itself.
type ReportedPeer struct {
	Address   string `json:"address"`
	Kind      string `json:"kind"`
	Profile   string `json:"profile,omitempty"`
	Transport string `json:"transport,omitempty"`
}

// Serve answers the tools with the state of the rank, and with its packets if they are recorded, until it is closed:
// the rank has to have started. A rank that cannot be served, as where it has no directory, works as any other; then
// there is nothing to close.
func (r *Rank) Serve() io.Closer {
	if r.Directory == "" {
		return io.NopCloser(nil)
	}
	started := time.Now()
	answer := func(metrics bool) []byte {
		text, err := json.Marshal(r.report(started, metrics))
		if err != nil {
			return nil // the tool says that the rank has not answered
		}
		return text
	}
	answers := jobs.Answers{
		Report: func() []byte { return answer(false) }, Metrics: func() []byte { return answer(true) },
		Others: r.askedText,
		Reset:  r.Engine.Reset,
	}
	if r.Packets != nil {
		answers.Packets = r.followPackets
	}
	c, err := jobs.Serve(r.Directory, r.Self.Rank, answers)
	if err != nil {
		return io.NopCloser(nil)
	}
	return c
}

func (r *Rank) report(started time.Time, metrics bool) *Report {
	p := &Report{
		Started: started, Rank: r.Self.Rank, Role: string(r.Self.Run), Address: r.Self.Address.String(),
		Kernel: r.Self.Kernel.String(), Transports: r.Transports(), Ring: r.Ring(), Oversubscribed: r.Oversubscribed(),
		Cluster: make([]ReportedPeer, len(r.Config.Ranks)), Engine: r.Engine.Snapshot(),
	}
	if r.Describe != nil {
		var described waitreport.Report
		r.Describe(&described)
		p.KernelHolds = described.KernelHolds
	}
	p.BufferRequested, p.Buffer = r.ReceiveBuffer()
	p.Drops, p.DropsKnown = r.SocketDrops()
	p.Shared, p.SingleCopy = r.Sharing()
	if o, ok := r.Offload(); ok {
		p.Offload = &ReportedOffload{Batches: o.Batches, Segmentation: o.Segments, Coalescing: o.Coalesces, Disabled: o.Off}
		for _, refused := range o.Refused {
			if p.Offload.Refused == nil {
				p.Offload.Refused = map[int]string{}
			}
			p.Offload.Refused[refused.Peer] = refused.Err.Error()
		}
	}
	links := r.Links()
	for i := range r.Config.Ranks {
		remote := &r.Config.Ranks[i]
		peer := ReportedPeer{Address: remote.Address.String(), Kind: string(remote.Peer)}
		if remote.Rank != r.Self.Rank {
			peer.Profile, peer.Transport = links[remote.Rank].Profile.String(), string(links[remote.Rank].Transport)
		}
		p.Cluster[remote.Rank] = peer
	}
	for i := range p.Engine.Peers {
		peer := &p.Engine.Peers[i]
		peer.Transport = string(links[peer.Rank].Transport)
	}
	r.Engine.Counters(func(c *mpe.RankCounters) {
		p.Operations += c.Posted
		if !metrics {
			return
		}
		p.Own = *c
		if r.Recorder != nil {
			p.Times.Classes, p.Times.Peers = r.Recorder.Classes(), map[int]phases.PerPeer{}
		}
	}, func(c *mpe.PeerCounters) {
		p.Operations += c.QueuedSends + c.InFlight
		if !metrics {
			return
		}
		p.Peers = append(p.Peers, *c)
		if r.Recorder != nil && r.Recorder.Known(c.Rank) && r.Recorder.Admit(c.Rank) {
			p.Times.Peers[c.Rank] = r.Recorder.Peer(c.Rank)
		}
	})
	return p
}
