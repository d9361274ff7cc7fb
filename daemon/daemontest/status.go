package daemontest

import (
	"fmt"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// StartTime is the start time of the daemon in the result of ClusterStatus.
var StartTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// StatusSource provides statuses to tests.
type StatusSource struct {
	// Value is the status returned by Status. After the first call of Status, change it only through Modify.
	Value state.Status

	mu    sync.Mutex
	calls int
}

// Status returns a copy of Value.
func (m *StatusSource) Status() state.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	return m.Value
}

// NumCalls returns the number of calls to Status.
func (m *StatusSource) NumCalls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Modify changes the next status through f, which must not modify memory shared with the previous status.
func (m *StatusSource) Modify(f func(s *state.Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.Value)
}

// ClusterStatus returns the status of a host with the given number of peers. If busy is set, the counters of each peer
// grow with uptime.
func ClusterStatus(peers int, uptime float64, busy bool) state.Status {
	status := state.Status{
		Version: "v1.0.0", PID: 4711, Config: "/etc/zrlmpid/zrlmpid.yaml", Started: StartTime, Uptime: uptime,
		Cluster: make([]state.Member, peers+1),
		HTTP:    "http://127.0.0.1:9627/",
	}
	rank := state.Rank{
		RankInfo: state.RankInfo{
			Rank: 0, Role: state.RoleHost, Address: "10.12.0.1:2718", Transports: []state.Transport{state.TransportUDP},
			ReceiveBuffer: 1 << 22, ReceiveBufferRequested: 1 << 22,
			Offload: &state.Offload{Batches: true, Segmentation: true},
		},
		Engine: state.Engine{Size: peers + 1, Posted: 3, Unexpected: 1},
	}
	status.Cluster[0] = state.Member{Role: state.RoleHost, Kind: "software", Address: rank.Address}
	for i := 1; i <= peers; i++ {
		n := uint64(0)
		if busy {
			n = uint64(uptime * 100)
		}
		peer := state.Peer{
			Rank: i, Kind: "fpga", Address: fmt.Sprintf("10.12.%d.%d:2718", i/250, i%250+1), Profile: "cloudfpga",
			Transport:     "udp",
			MessageCounts: state.MessageCounts{Sent: n, Received: n}, PacketsIn: 4 * n, BytesIn: 4000 * n,
			BytesOut: 3000 * n, PacketsOut: state.PacketCounts{protocol.Data: n},
		}
		status.Cluster[i] = state.Member{Rank: i, Kind: peer.Kind, Address: peer.Address}
		rank.Engine.Peers = append(rank.Engine.Peers, peer)
	}
	status.Ranks = []state.Rank{rank}
	return status
}

// AddWait makes rank 0 of s wait for SEND_REQUEST from a peer.
func AddWait(s *state.Status, peer int, seconds float64) {
	s.Ranks[0].Engine.Peers[peer-1].Receiving = &state.Wait{
		State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: seconds,
		Text: fmt.Sprintf("rank 0 waits for SEND_REQUEST from rank %d", peer),
	}
}
