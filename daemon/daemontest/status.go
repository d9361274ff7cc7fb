package daemontest

import (
	"fmt"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Started is when the daemon of Cluster was started.
var Started = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Source is a source of statuses that a test makes.
type Source struct {
	// Value is what Status returns. Once Status may be called, Change changes it.
	Value state.Status

	mu    sync.Mutex
	times int
}

// Status returns the status.
func (m *Source) Status() state.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times++
	return m.Value
}

// Taken returns how often Status was called.
func (m *Source) Taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.times
}

// Change changes the next status, which must not share what it changes with the last.
func (m *Source) Change(f func(s *state.Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.Value)
}

// Cluster is a status of a host and of so many peers. Some wait, lose, fail.
func Cluster(peers int, uptime float64, busy bool) state.Status {
	s := state.Status{
		Version: "v1.0.0", PID: 4711, Config: "/etc/zrlmpid/zrlmpid.yaml", Started: Started, Uptime: uptime, Cluster: make([]state.Member, peers+1),
		HTTP: "http://127.0.0.1:9627/",
	}
	r := state.Rank{
		RankInfo: state.RankInfo{
			Rank: 0, Role: state.RoleHost, Address: "10.12.0.1:2718", Transports: []state.Transport{state.TransportUDP}, ReceiveBuffer: 1 << 22, ReceiveBufferRequested: 1 << 22,
			Offload: &state.Offload{Batches: true, Segmentation: true},
		},
		Engine: state.Engine{Size: peers + 1, Posted: 3, Unexpected: 1},
	}
	s.Cluster[0] = state.Member{Role: state.RoleHost, Kind: "software", Address: r.Address}
	for i := 1; i <= peers; i++ {
		n := uint64(0)
		if busy {
			n = uint64(uptime * 100)
		}
		p := state.Peer{
			Rank: i, Kind: "fpga", Address: fmt.Sprintf("10.12.%d.%d:2718", i/250, i%250+1), Profile: "cloudfpga", Transport: "udp",
			MessageCounts: state.MessageCounts{Sent: n, Received: n}, PacketsIn: 4 * n, BytesIn: 4000 * n, BytesOut: 3000 * n, PacketsOut: state.PacketCounts{protocol.Data: n},
		}
		s.Cluster[i] = state.Member{Rank: i, Kind: p.Kind, Address: p.Address}
		r.Engine.Peers = append(r.Engine.Peers, p)
	}
	s.Ranks = []state.Rank{r}
	return s
}

// Waits lets rank 0 wait for a peer.
func Waits(s *state.Status, peer int, seconds float64) {
	s.Ranks[0].Engine.Peers[peer-1].Receiving = &state.Wait{
		State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: seconds,
		Text: fmt.Sprintf("rank 0 waits for SEND_REQUEST from rank %d", peer),
	}
}
