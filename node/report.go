package node

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/waitreport"
)

// Report is the state of a rank of a job, as it answers the tools.
type Report struct {
	PID     int       `json:"pid"`
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
	Cluster []ReportedPeer     `json:"cluster"`
	Engine  mpe.Snapshot       `json:"engine"`
	Own     mpe.RankCounters   `json:"counters"`
	Peers   []mpe.PeerCounters `json:"peer_counters"`
	// Times has the phases of messages, if they are recorded.
	Times phases.Times `json:"times"`
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

// Serve answers the tools with the rank's state, and with its packets if they are recorded, until it is closed: the rank has to have started. A rank that cannot be
// served, as where the system has no such sockets, works as any other; then there is nothing to close.
func (r *Rank) Serve(job string) io.Closer {
	started := time.Now()
	c, err := jobs.Serve(job, r.Self.Rank, func() []byte {
		text, err := json.Marshal(r.report(started))
		if err != nil {
			return nil // the tool says that the rank has not answered
		}
		return text
	}, func() []byte { return r.askedText(job) })
	if err != nil {
		return io.NopCloser(nil)
	}
	if r.Packets == nil {
		return c
	}
	p, err := jobs.ServePackets(job, r.Self.Rank, r.followPackets)
	if err != nil {
		return c
	}
	return closers{p, c}
}

// closers are closed one after the other.
type closers []io.Closer

// Close closes all.
func (list closers) Close() error {
	var errs []error
	for _, c := range list {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (r *Rank) report(started time.Time) *Report {
	p := &Report{
		PID: os.Getpid(), Started: started, Rank: r.Self.Rank, Role: string(r.Self.Run), Address: r.Self.Address.String(),
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
		p.Own = *c
		if r.Recorder != nil {
			p.Times.Classes, p.Times.Peers = r.Recorder.Classes(), map[int]phases.PerPeer{}
		}
	}, func(c *mpe.PeerCounters) {
		p.Peers = append(p.Peers, *c)
		if r.Recorder != nil && r.Recorder.Known(c.Rank) && r.Recorder.Admit(c.Rank) {
			p.Times.Peers[c.Rank] = r.Recorder.Peer(c.Rank)
		}
	})
	return p
}
