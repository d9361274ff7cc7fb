package diagnosis

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// status returns the status of a daemon with the given local ranks, in a world of the given size.
func status(size int, ranks ...state.Rank) *state.Status {
	s := &state.Status{Ranks: ranks, Cluster: make([]state.Member, size)}
	for i := range s.Cluster {
		s.Cluster[i] = state.Member{Rank: i, Address: address(i), Kind: "software"}
	}
	for i := range ranks {
		s.Cluster[ranks[i].Rank].Role = ranks[i].Role
	}
	return s
}

func address(rank int) string { return fmt.Sprintf("10.0.0.%d:2718", rank+1) }

// host returns a rank with a program, and standin a rank with a kernel.
func host(rank int, peers ...state.Peer) state.Rank {
	for i := range peers {
		if peers[i].Address == "" {
			peers[i].Address = address(peers[i].Rank)
		}
	}
	return state.Rank{
		RankInfo: state.RankInfo{Rank: rank, Role: state.RoleHost, Address: address(rank),
			Attached: []state.Program{{PID: 4700 + rank}}},
		Engine: state.Engine{Rank: rank, Peers: peers},
	}
}

func standin(rank int, peers ...state.Peer) state.Rank {
	r := host(rank, peers...)
	r.Role, r.Kernel, r.KernelState, r.Attached = state.RoleStandin, "echo", state.KernelRunning, nil
	return r
}

type peerOption func(p *state.Peer)

func peer(rank int, options ...peerOption) state.Peer {
	p := state.Peer{Rank: rank, Kind: "software", Profile: "cloudfpga", Transport: "udp", SinceLastPacket: new(0.1),
		PacketsOut: state.PacketCounts{protocol.SendRequest: 3}}
	for _, o := range options {
		o(&p)
	}
	return p
}

func sending(s handshake.State, seconds float64) peerOption {
	return func(p *state.Peer) {
		p.Sending = &state.Wait{
			State: s, WaitsFor: s.AwaitedPacket(), Seconds: seconds, Envelope: state.Envelope{Bytes: 16, Tag: new(3)},
			Awaited: true,
		}
	}
}

func receiving(seconds float64) peerOption {
	return func(p *state.Peer) {
		p.Receiving = &state.Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: seconds,
			Text: "it waits", Envelope: state.Envelope{Bytes: 16}, Awaited: true}
	}
}

func extended(x state.Extended) peerOption {
	return func(p *state.Peer) { p.Profile, p.Extended = "extended", &x }
}

func with(change func(p *state.Peer)) peerOption { return change }

func neverHeard(p *state.Peer) { p.SinceLastPacket = nil }

func fpga(p *state.Peer) { p.Kind = "fpga" }

func call(name string, number int, root *int, waitsFor ...int) collective.Snapshot {
	return collective.Snapshot{Collective: name, Algorithm: "flat", Comm: 1, Number: number, Seconds: 9, Root: root,
		Bytes: 16, WaitsFor: waitsFor}
}

func inCall(r state.Rank, c collective.Snapshot) state.Rank {
	r.Engine.Calls = append(r.Engine.Calls, c)
	return r
}

func had(r state.Rank, c collective.EndedCall) state.Rank {
	r.Engine.EndedCalls = append(r.Engine.EndedCalls, c)
	return r
}

func stopped(r state.Rank) state.Rank {
	r.Attached[0].Stopped = true
	return r
}

func detached(r state.Rank, ended *float64) state.Rank {
	r.Attached, r.Engine.SinceLastEnd = nil, ended
	return r
}
