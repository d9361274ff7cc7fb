package diagnosis

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestCauses checks the cause found for each state of the ranks. In the tests of package hangs, such states come from
// real sockets.
func TestCauses(t *testing.T) {
	anySource := host(0)
	anySource.Engine.AnySource = &state.Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: 9,
		Envelope: state.Envelope{Bytes: 16, Tag: new(5)}}
	anySource.Engine.Peers = []state.Peer{peer(1), peer(2)}
	anyTag := anySource
	anyTag.Engine.Peers = []state.Peer{peer(1),
		peer(2, with(func(p *state.Peer) { p.Unexpected, p.Unmatched = 7, []state.Envelope{{Tag: new(6), Bytes: 4}} }))}
	after := func(s *state.Status, failed float64) *state.Status {
		s.Uptime, s.Failures = 100,
			[]state.Failure{{Rank: 1, Time: s.Started.Add(time.Duration((100 - failed) * float64(time.Second))),
				Operation: state.OperationCollective, Reason: "it has 4 bytes"}}
		s.Ranks[1].Engine.SinceLastEnd = new(5.0)
		return s
	}
	failed := standin(1)
	failed.KernelState, failed.KernelError = state.KernelFailed, "exit status 1"
	holds := standin(1)
	holds.Kernel, holds.KernelBlockReason = "rtl:./role",
		"siMPI_data_tready since cycle 70 (now 900): low, with line 1 of 2 offered"
	program := standin(1)
	program.Kernel, program.KernelBlockReason = "exec:./role", "program ./role has made no call for 5s"
	unknown := host(0, peer(1, sending(handshake.WaitClear, 9), neverHeard))
	unknown.Engine.LastDrop = &state.Drop{Reason: state.DropUnknownAddress, From: "10.0.0.77:2718",
		Source: new(uint32(1))}
	job := status(3, host(0, peer(1, receiving(9)), peer(2)))
	job.Job, job.Silent, job.SilentProcesses = "zrlctl_1", []int{2}, []state.SilentProcess{{Rank: 2, PID: 99}}
	for i := range job.Cluster {
		job.Cluster[i].Address = fmt.Sprintf("10.0.0.1:%d", 2718+i)
	}
	silentJob := *job
	silentJob.Ranks = []state.Rank{host(0, peer(1), peer(2, receiving(9)))}
	stoppedJob := silentJob
	stoppedJob.SilentProcesses = []state.SilentProcess{{Rank: 2, PID: 99, Stopped: true}}
	unknownJob := silentJob
	unknownJob.SilentProcesses = nil
	for name, tt := range map[string]struct {
		status *state.Status
		cause  string
		rank   int
		// text and step must occur in the finding's text and step.
		text, step string
	}{
		"computes": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9))), host(1)), ProgramComputes, 1,
			"rank 0 has waited 9.0 s to send 16 bytes with tag 3 to rank 1, CLEAR_TO_SEND is missing: rank 1 runs " +
				"and waits for nothing", "process 4701 on 10.0.0.2 does, which is rank 1: top -p 4701, gdb -p 4701"},
		"call failed": {after(status(2, host(0, peer(1, receiving(9))), host(1)), 5.05), CallFailed, 1,
			"the last operation of rank 1 (collective call) has failed, and it has not sent the message since",
			"MPI_Abort"},
		"failed before": {after(status(2, host(0, peer(1, receiving(9))), host(1)), 6), ProgramComputes, 1,
			"runs and waits for nothing", "gdb"},
		"busy": {status(3, host(0, peer(1, sending(handshake.WaitClear, 9))),
			host(1, peer(2, receiving(.2))), host(2)), ProgramComputes, 1, "rank 1 exchanges messages with other ranks",
			"gdb"},
		"follows": {status(3, host(0, peer(1, receiving(9))), host(1, peer(2, receiving(8))), host(2)),
			ProgramComputes, 2, "rank 1 has waited 8.0 s", "gdb -p 4702"},
		"stopped": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9))), stopped(host(1))), ProcessStopped,
			1, "process 4701, which is rank 1, is stopped", "continue process 4701 on 10.0.0.2: kill -CONT 4701"},
		"no program": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9))), detached(host(1), nil)),
			NotAttached, 1, "no program uses rank 1", "start the program of rank 1"},
		"ended": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9))), detached(host(1), new(4.0))),
			ProcessEnded, 1, "the program of rank 1 has exited", "exit code"},
		"job, ended": {job, ProcessEnded, 1, "rank 1 has no process on this host", "start the job again"},
		"job, silent": {&silentJob, ProcessSilent, 2,
			"process 99, which is rank 2, is there and does not answer", "gdb -p 99"},
		"job, unknown": {&unknownJob, ProcessSilent, 2, "the process of rank 2 is there and does not answer",
			"state T of ps"},
		"job, stopped": {&stoppedJob, ProcessStopped, 2, "process 99, which is rank 2, is stopped",
			"continue process 99 on 10.0.0.1: kill -CONT 99"},
		"kernel failed": {status(2, host(0, peer(1, receiving(9))), failed), KernelFailed, 1,
			"the kernel echo of stand-in 1 is no longer running", "restart zrlmpid"},
		"role holds": {status(2, host(0, peer(1, receiving(9))), holds), RoleHolds, 1,
			"the role of stand-in 1, in simulation, holds a signal: siMPI_data_tready since cycle 70 (now 900)",
			"waves"},
		"program holds": {status(2, host(0, peer(1, receiving(9))), program), RoleHolds, 1,
			"the program of stand-in 1 exchanges no messages: program ./role has made no call for 5s",
			"mpe_interface.md"},
		"kernel waits": {status(2, host(0, peer(1, receiving(9))), standin(1, peer(0, receiving(9)))), KernelWaits,
			1, "the kernel echo of stand-in 1 waits for a message itself", "send rank 1"},
		"never heard, FPGA": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9), neverHeard, fpga))),
			NeverHeard, 1, "no packet was ever received from rank 1 at 10.0.0.2:2718",
			"the FPGA at 10.0.0.2:2718 runs its role"},
		"nothing sent": {status(2,
			host(0, peer(1, receiving(9), neverHeard,
				with(func(p *state.Peer) { p.PacketsOut = state.PacketCounts{} })))), NothingSent, 1,
			"nothing was received from rank 1", "--daemons http://10.0.0.2:9627"},
		"not asked": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9),
			extended(state.Extended{PeerSession: 5})))), StateUnknown, 1, "what rank 1 waits for is not known here",
			"zrlctl why --daemons http://10.0.0.2:9627"},
		"silent": {status(2, host(0,
			peer(1, sending(handshake.WaitAck, 9), with(func(p *state.Peer) { p.SinceLastPacket = new(9.0) }),
				extended(state.Extended{PeerSession: 5, InFlight: 2, Retransmissions: 4,
					Stalled: 8})))), PeerSilent, 1, "does not answer any more", "ping 10.0.0.2"},
		"network error": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9),
			with(func(p *state.Peer) { p.NetworkError, p.SinceLastPacket = "write: connection refused", nil })))), NetworkError,
			1,
			"rank 1 at 10.0.0.2:2718 cannot be reached: nothing listens", "start its daemon"},
		"TLS": {status(2, host(0, peer(1, receiving(9), neverHeard, with(func(p *state.Peer) {
			p.NetworkError = "tls with 10.0.0.2:2718: the certificate of the peer must be signed by the authority"
		})))), TLSMismatch, 1, "TLS prevents the connection between ranks 0 and 1",
			"compare tls in the configurations of ranks 0 and 1"},
		"TLS, as the peer says": {status(2, host(0, peer(1, receiving(9), neverHeard)), host(1, peer(0, neverHeard,
			with(func(p *state.Peer) {
				p.NetworkError = "tls with 10.0.0.1:2718: the peer speaks TLS, and this rank does not"
			})))), TLSMismatch, 1,
			"TLS prevents the connection between ranks 1 and 0", "compare tls in the configurations of ranks 1 and 0"},
		"no answer to the handshake of TLS": {status(2,
			host(0, peer(1, receiving(9), neverHeard, with(func(p *state.Peer) {
				p.NetworkError = "tls with 10.0.0.2:2718: EOF: no answer to the handshake: has the peer tls, too?"
			})))), NeverHeard, 1, "causes are possible", "start rank 1"},
		"too long": {status(2, host(0,
			peer(1, sending(handshake.WaitAck, 9),
				with(func(p *state.Peer) { p.NetworkError = "sendmsg: message too long" })))), PathMTU, 1,
			"does not carry datagrams as long as its DATA", "compare the MTU"},
		"dead end": {status(2, host(0,
			peer(1, receiving(9), fpga,
				with(func(p *state.Peer) { p.Refuses = "not sent: rank 1 is in a message; more" })))), DeadEnd, 1,
			"rank 1, an FPGA, is in a dead end: rank 1 is in a message", "zrlctl reset 1 --from 0"},
		"another rank's address": {status(3, host(0, peer(1, sending(handshake.WaitClear, 9), with(func(p *state.Peer) {
			p.LastDrop = &state.Drop{Reason: state.DropSourceRank, Source: new(uint32(2))}
		})))), WrongAddress, 1,
			"which the rank map of rank 0 gives to rank 1, is that of rank 2",
			"correct the addresses of ranks 1 and 2"},
		"unknown address": {status(2, unknown), WrongAddress, 1, "rank 1 is at 10.0.0.77:2718",
			"set the address of rank 1"},
		"foreign profile": {status(2,
			host(0, peer(1, sending(handshake.WaitClear, 9),
				with(func(p *state.Peer) {
					p.LastDrop = &state.Drop{Reason: state.DropReserved,
						Profile: "extended"}
				})))), WrongProfile, 1,
			"rank 1 speaks profile extended to rank 0, which is configured for profile cloudfpga",
			"set profile: extended for rank 1"},
		"another version": {status(2, host(0, peer(1, with(func(p *state.Peer) {
			p.Sending = &state.Wait{State: handshake.Held, Seconds: 9, Text: "rank 1 speaks version 0xe1"}
		})))), WrongProfile, 1,
			"another version of the extended profile", "the same release"},
		"lost ACK": {status(2, host(0,
			peer(1, sending(handshake.WaitAck, 9), with(func(p *state.Peer) { p.Sending.Retransmissions = 3 }))),
			host(1, peer(0, with(func(p *state.Peer) { p.Received = 1 })))), LostAck, 1,
			"either ACK from rank 1 to rank 0 was lost, or rank 1, or its program, has begun again", "zrlctl analyze"},
		"lost CLEAR_TO_SEND": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9))),
			host(1, peer(0, receiving(9), with(func(p *state.Peer) { p.Receiving.State = handshake.WaitData })))),
			LostPacket, 1,
			"CLEAR_TO_SEND from rank 1 to rank 0 was lost", "zrlctl analyze"},
		"room for more": {status(2, host(0, peer(1, sending(handshake.WaitAck, 9))),
			host(1, peer(0, receiving(9), with(func(p *state.Peer) {
				p.Receiving.State, p.Receiving.Words, p.Receiving.Envelope.Bytes = handshake.Receiving, 400, 4000
			})))), LostPacket, 0,
			"DATA from rank 0 to rank 1 was lost", "look for drops"},
		"communicator": {status(2, host(0, peer(1, receiving(9), with(func(p *state.Peer) {
			p.Unexpected, p.Unmatched = 1, []state.Envelope{{Tag: new(3), Comm: 4, Bytes: 4}}
		}))), host(1)), CommMismatch, 0,
			"rank 1 has sent with communicator 4, and rank 0 receives with communicator 0", "the same communicator"},
		"any source": {status(3, anySource), AnySourceUnmet, AnyRank,
			"to receive up to 16 bytes with tag 5 from any rank", "which rank should send"},
		"any source, tag": {status(3, anyTag), TagMismatch, 0, "rank 2 has sent with tag 6, and rank 0 receives with tag 5",
			"the same tag"},
		"blocked remote": {status(2, host(0, peer(1, receiving(9), with(func(p *state.Peer) {
			p.Deferred = &state.Deferred{Call: "SEND_FLOAT", Seconds: 9}
			p.Receiving.Deferred = "SEND_FLOAT"
			p.Receiving.Envelope.Datatype = "int"
		})))), DatatypeMismatch, 0, "rank 1 sends with SEND_FLOAT, and rank 0 receives with RECV_INT", "the same datatype"},
		"call, by shared": {status(2, inCall(host(0, peer(1)), call("Barrier", 4, nil, 1)), host(1)), ProgramComputes, 1,
			"rank 0 has waited 9.0 s in Barrier (call 4 in communicator 1) for rank 1", "gdb"},
		"call order": {status(3, inCall(host(0, peer(1)), call("Barrier", 4, nil, 1)),
			inCall(host(1, peer(0)), call("Bcast", 4, new(0), 0)),
			inCall(host(2, peer(1)), call("Barrier", 4, nil,
				1))), CallOrder, 1, "rank 1 has called Bcast, and ranks 0 and 2 have called Barrier", "the same order"},
		"earlier call": {status(3, had(inCall(host(0, peer(1)), call("Barrier", 5, nil, 1)),
			collective.EndedCall{Collective: "Bcast", Comm: 1, Number: 4, Root: new(0)}), had(host(1),
			collective.EndedCall{Collective: "Bcast", Comm: 1, Number: 4,
				Root: new(1)})), RootMismatch, 0, "Bcast with root 0", "the same root"},
		"count of a call": {status(2, inCall(host(0, peer(1)), call("Allreduce", 4, nil, 1)),
			had(host(1), collective.EndedCall{Collective: "Allreduce", Comm: 1, Number: 4,
				Bytes: 8})), CountMismatch, 0, "Allreduce of 16 bytes", "the same count"},
		"never heard, CPU": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9), neverHeard,
			with(func(p *state.Peer) { p.Kind = state.KindCPU })))), NeverHeard, 1,
			"no packet was ever received from rank 1", "start the program of rank 1"},
		"no receive, FPGA": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9), fpga))), StateUnknown, 1,
			"what rank 1 waits for is not known here", "--daemons"},
		"credit is scarce": {status(2, host(0, peer(1, sending(handshake.WaitClear, 9),
			extended(state.Extended{PeerSession: 5, MessageCredit: 9, CreditScarce: true}))), host(1)),
			CreditExhausted, 1, "almost as many messages of rank 0 as rank 1 allows", "does not receive"},
		"credit of an unknown": {status(2,
			host(0, peer(1, sending(handshake.Held, 9), extended(state.Extended{PeerSession: 5})))), CreditExhausted, 1,
			"as many messages of rank 0 as rank 1 allows", "--daemons"},
	} {
		d := Diagnose([]Source{{Status: tt.status}}, MinWaitAge)
		if len(d.Findings) != 1 {
			t.Errorf("%s: %d findings:\n%s", name, len(d.Findings), d.Text())
			continue
		}
		f := &d.Findings[0]
		if f.Cause != tt.cause || f.Rank != tt.rank || !strings.Contains(f.Text, tt.text) ||
			!strings.Contains(f.Step, tt.step) || len(f.Waiting) == 0 {
			t.Errorf("%s: %+v", name, f)
		}
		if f.Certain != (len(f.Possible) == 0) && f.Cause != AnySourceUnmet && f.Cause != ProcessSilent &&
			f.Cause != CreditExhausted {
			t.Errorf("%s: certain %v of %+v", name, f.Certain, f.Possible)
		}
		if f.Cause == ProcessEnded && len(d.Unknown) > 0 {
			t.Errorf("%s: not known: %v", name, d.Unknown)
		}
		if !slices.ContainsFunc(Causes, func(c Cause) bool { return c.ID == f.Cause }) {
			t.Errorf("%s: cause %s is not in the table", name, f.Cause)
		}
	}
}

// TestNoCycleInOneMessage checks that two ranks that wait for each other in one message are not a cycle of calls, and
// that no cause is certain.
func TestNoCycleInOneMessage(t *testing.T) {
	receiver := func(s handshake.State) *state.Status {
		return status(2, host(1, peer(0, receiving(8), with(func(p *state.Peer) {
			p.Receiving.State, p.Receiving.WaitsFor = s, protocol.Data
			p.Deferred, p.SinceLastPacket = &state.Deferred{Call: "SEND_INT", Seconds: 9}, new(9.0)
		}))))
	}
	for _, s := range []handshake.State{handshake.WaitData, handshake.Receiving} {
		d := Diagnose([]Source{{Status: receiver(s)}}, MinWaitAge)
		if len(d.Findings) != 1 {
			t.Fatal(d.Text())
		}
		f := &d.Findings[0]
		if f.Cause != LostPacket || f.Certain || f.Cycle != nil || !possible(f, LostPacket) ||
			!possible(f, Restarted) ||
			possible(f, ProgramComputes) ||
			!slices.Equal(f.Waiting, []int{0, 1}) {
			t.Errorf("%+v", f)
		}
	}
	// The peer retransmits SEND_REQUEST: CLEAR_TO_SEND does not arrive, it is dropped, or all packets are late. Here
	// the sender is the higher rank.
	above := Diagnose([]Source{{Status: status(2, host(0, peer(1, receiving(8), with(func(p *state.Peer) {
		p.Receiving.State, p.Receiving.WaitsFor, p.Deferred = handshake.WaitData, protocol.Data,
			&state.Deferred{Call: "SEND_INT", Seconds: 9}
	}))))}}, MinWaitAge)
	if len(above.Findings) != 1 || above.Findings[0].Cause != LostPacket || above.Findings[0].Certain ||
		len(above.Findings[0].Possible) != 3 {
		t.Error(above.Text())
	}
}

// TestLongAgo checks that faults from before the program or the wait began explain nothing, but that later faults do.
func TestLongAgo(t *testing.T) {
	const uptime, attached, since = 900, 60, 9
	for name, tt := range map[string]struct {
		change  func(ranks []state.Rank)
		certain bool
	}{
		"nothing":                     {func([]state.Rank) {}, true},
		"unreachable before the wait": {func(r []state.Rank) { r[1].Engine.Peers[0].Unreachable = new(500.0) }, true},
		"unreachable since":           {func(r []state.Rank) { r[1].Engine.Peers[0].Unreachable = new(5.0) }, false},
		"restarted before the program": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Received = 100, 50
		}, true},
		"restarted since": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Received = 30, 50
		}, false},
		"another session since": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Events[state.EventSessionChanged] = 30, 1
		}, false},
		"another session, in a report of a second ago": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Events[state.EventSessionChanged] = attached+0.5, 1
		}, false},
		"it lacks a message that was acknowledged": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Sent, r[1].Engine.Peers[0].Received = 30, 3, 2
		}, false},
		"it has all messages that were acknowledged": {func(r []state.Rank) {
			r[1].Engine.Uptime, r[0].Engine.Peers[0].Sent, r[1].Engine.Peers[0].Received = 30, 3, 3
		}, true},
		"started after the others": {func(r []state.Rank) { r[1].Engine.Uptime = 30 }, true},
		"both before their first collective call": {func(r []state.Rank) {
			for i := range r {
				r[i].Engine.Peers[0].Receiving.Envelope.Agreement = true
			}
		}, false},
	} {
		ranks := []state.Rank{host(0, peer(1, receiving(since))), host(1, peer(0, receiving(since)))}
		for i := range ranks {
			ranks[i].Engine.Uptime, ranks[i].Attached[0].Seconds = uptime, attached
		}
		tt.change(ranks)
		d := Diagnose([]Source{{Status: status(2, ranks...)}}, MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Certain != tt.certain ||
			tt.certain && (d.Findings[0].Cause != WaitCycle || d.Findings[0].Peer != 0) {
			t.Errorf("%s: %s", name, d.Text())
		}
	}
}

// TestUnawaited checks that a rank may keep others waiting by computing, if its program may not be waiting for the
// operation that it has posted.
func TestUnawaited(t *testing.T) {
	for _, awaited := range []bool{true, false} {
		posted := func(p *state.Peer) { p.Receiving.Awaited = awaited }
		d := Diagnose([]Source{{Status: status(3, host(0, peer(1, receiving(9))), host(1, peer(2, receiving(9), posted)),
			standin(2, peer(1, receiving(9))))}}, MinWaitAge)
		certain := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Certain })
		if len(d.Findings) == 0 || (certain >= 0) != awaited || !awaited && !possible(&d.Findings[0], ProgramComputes) {
			t.Errorf("%v: %s", awaited, d.Text())
		}
	}
}

// TestLastFailed checks that a rank that is in no call certainly computes, unless its last call has failed.
func TestLastFailed(t *testing.T) {
	for _, failed := range []bool{false, true} {
		idle := host(1)
		idle.Engine.LastFailed = failed
		d := Diagnose([]Source{{Status: status(2, host(0, peer(1, receiving(9))), idle)}}, MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Cause != ProgramComputes || d.Findings[0].Certain == failed ||
			possible(&d.Findings[0], CallFailed) != failed {
			t.Errorf("%v: %s", failed, d.Text())
		}
	}
}

// possible reports whether a finding lists a cause as possible.
func possible(f *Finding, cause string) bool {
	return slices.ContainsFunc(f.Possible, func(p Possibility) bool { return string(p.Cause) == cause })
}

// TestChangedAddress checks that missing packets from a rank may be those that arrive from an address that no rank has.
func TestChangedAddress(t *testing.T) {
	for _, changed := range []bool{false, true} {
		silent := host(1, peer(0, neverHeard))
		if changed {
			silent.Engine.LastDrop = &state.Drop{Reason: state.DropUnknownAddress, From: "10.0.0.77:2718", Seconds: 3}
		}
		asks := with(func(p *state.Peer) { p.Sending.Retransmissions = 3 })
		d := Diagnose([]Source{{Status: status(2, host(0, peer(1, sending(handshake.WaitClear, 9), asks)), silent)}},
			MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Cause != PacketsBlocked {
			t.Fatal(d.Text())
		}
		f := &d.Findings[0]
		if strings.Contains(f.Why, "changes their source address") != changed ||
			strings.Contains(fmt.Sprint(f.Evidence), "10.0.0.77:2718") != changed {
			t.Errorf("%v: %+v", changed, f)
		}
	}
}

// TestStrangers checks that packets dropped because their address is not in the rank map are mentioned even if no rank
// is known to wait.
func TestStrangers(t *testing.T) {
	for _, tt := range []struct {
		drop state.Drop
		want bool
	}{
		{state.Drop{Reason: state.DropUnknownAddress, From: "10.0.0.77:2718", Source: new(uint32(1)), Seconds: 5},
			true},
		{state.Drop{Reason: state.DropUnknownAddress, From: "10.0.0.77:2718", Source: new(uint32(1)), Seconds: 61},
			false},
		{state.Drop{Reason: state.DropUnknownAddress, From: "10.0.0.77:2718", Seconds: 5}, false}, // not from a rank
		{state.Drop{Reason: state.DropShort, From: "10.0.0.77:2718", Source: new(uint32(1)), Seconds: 5}, false},
	} {
		r := host(0, peer(1))
		r.Engine.LastDrop = &tt.drop
		d := Diagnose([]Source{{Status: status(2, r)}}, MinWaitAge)
		if has := slices.ContainsFunc(d.Doubts,
			func(s string) bool { return strings.Contains(s, "packets from 10.0.0.77:2718") }); has != tt.want {
			t.Errorf("%+v: %v", tt.drop, d.Doubts)
		}
	}
}

// TestStoppedAlone checks that a stopped process is reported even if no rank of its job has answered, but not if a rank
// has answered and none waits for the process.
func TestStoppedAlone(t *testing.T) {
	job := &state.Status{Job: "kvs", Silent: []int{4, 5},
		SilentProcesses: []state.SilentProcess{{Rank: 4, PID: 98}, {Rank: 5, PID: 99, Stopped: true}}}
	d := Diagnose([]Source{{Status: job}}, MinWaitAge)
	want := "process 99, which is rank 5, is stopped by a signal or a debugger; which ranks wait for it is known on " +
		"their hosts\n" +
		"  evidence: its state in /proc/99/stat is T\n  next: continue process 99 on this host: kill -CONT 99, or in " +
		"the debugger\n" +
		"not certain: the processes of these ranks do not answer: 4 5\n"
	if len(d.Findings) != 1 || d.Findings[0].Rank != 5 || d.Findings[0].Cause != ProcessStopped ||
		!strings.EqualFold(d.Text(), want) {
		t.Errorf("%+v\n%q", d.Findings, d.Text())
	}
	for name, only := range map[string]int{"of it": len(d.ForRank(5).Findings),
		"of another": 1 - len(d.ForRank(4).Findings)} {
		if only != 1 {
			t.Errorf("%s: %d findings", name, only)
		}
	}
	idle := status(6, host(0))
	idle.Job, idle.Silent, idle.SilentProcesses = job.Job, job.Silent, job.SilentProcesses
	if d := Diagnose([]Source{{Status: idle}}, MinWaitAge); len(d.Findings) != 0 {
		t.Errorf("no rank waits for it: %+v", d.Findings)
	}
}

// TestDeployed checks that a deployed node is reported as one that cannot be asked.
func TestDeployed(t *testing.T) {
	for name, tt := range map[string]struct {
		wait  peerOption
		cause string
	}{"send": {sending(handshake.WaitClear, 9), NoReceive}, "receive": {receiving(9), NothingSent}} {
		s := status(2, host(0, peer(1, tt.wait, fpga)))
		s.Cluster[1].Kind = "fpga"
		// A stand-in with its own MPE cannot be asked, either.
		simulated := status(2, host(0, peer(1, tt.wait, fpga)), standin(1, peer(0)))
		simulated.Ranks[1].Kernel, simulated.Ranks[1].KernelState = "rtl-net:./role", state.KernelRunning
		simulated.Cluster[1].Kind, simulated.Cluster[1].Kernel = "fpga", "rtl-net:./role"
		for _, s := range []*state.Status{s, simulated} {
			d := Diagnose([]Source{{Status: s}}, MinWaitAge)
			if len(d.Findings) != 1 || d.Findings[0].Cause != tt.cause || d.Findings[0].Certain {
				t.Errorf("%s: %s", name, d.Text())
			}
			if want := []UnknownRank{{1, address(1), "a deployed node cannot be asked"}}; !slices.Equal(d.Unknown, want) {
				t.Errorf("%s: %+v", name, d.Unknown)
			}
		}
		simulated.Ranks[1].KernelBlockReason = "siNRC_Udp_Data_tready since cycle 70 (now 900): low"
		if d := Diagnose([]Source{{Status: simulated}}, MinWaitAge); len(d.Findings) != 1 ||
			d.Findings[0].Cause != RoleHolds {
			t.Errorf("%s: %s", name, d.Text())
		}
	}
}

// TestDeployedStates checks that the progress of a message with a deployed node excludes causes.
func TestDeployedStates(t *testing.T) {
	cleared := func(s handshake.State) peerOption {
		return func(p *state.Peer) { receiving(9)(p); p.Receiving.State = s }
	}
	silent := with(func(p *state.Peer) { p.SinceLastPacket = new(9.0) })
	for name, tt := range map[string]struct {
		wait     peerOption
		symptom  string
		possible []string
	}{
		"not cleared": {sending(handshake.WaitClear, 9), NoReceive,
			[]string{ProgramComputes, WaitsElsewhere, OtherCall, PacketsBlocked, PacketsBlocked, ProcessEnded, Restarted,
				DeadEnd}},
		"not acknowledged": {sending(handshake.WaitAck, 9), LostPacket,
			[]string{LostPacket, LostPacket, PacketDropped, CountMismatch, ProcessEnded, Restarted, DeadEnd}},
		"not asked": {receiving(9), NothingSent, []string{ProgramComputes, WaitsElsewhere, OtherCall, PacketsBlocked,
			PacketsBlocked,
			ProcessEnded, Restarted, DeadEnd}},
		"no DATA": {cleared(handshake.WaitData), LostPacket,
			[]string{LostPacket, LostPacket, PacketDropped, ProcessEnded, Restarted, DeadEnd}},
		"a part of DATA": {cleared(handshake.Receiving), LostPacket,
			[]string{LostPacket, ProcessEnded, Restarted, DeadEnd}},
	} {
		s := status(2, host(0, peer(1, tt.wait, fpga, silent, with(func(p *state.Peer) {
			p.Sent,
				p.Events[state.EventReacked] = 7, 3
		}))))
		s.Cluster[1].Kind = "fpga"
		d := Diagnose([]Source{{Status: s}}, MinWaitAge)
		if len(d.Findings) != 1 {
			t.Fatalf("%s: %s", name, d.Text())
		}
		f := &d.Findings[0]
		var causes []string
		for _, p := range f.Possible {
			causes = append(causes, string(p.Cause))
		}
		if f.Cause != tt.symptom || f.Certain || !slices.Equal(causes, tt.possible) || !slices.Contains(f.Evidence,
			"of rank 1, rank 0 has counted: reacked 3") {
			t.Errorf("%s: %v, %+v", name, causes, f)
		}
	}
}

// TestSources checks that the states of several daemons form one graph, and that a daemon that has not answered is
// named.
func TestSources(t *testing.T) {
	one, two := status(3, host(0, peer(1, receiving(9)))), status(3, host(1, peer(2, receiving(8))))
	three := status(3, host(2, peer(0, receiving(7))))
	d := Diagnose([]Source{{Status: one}, {Status: two}, {Status: three}}, MinWaitAge)
	if len(d.Findings) != 1 || d.Findings[0].Cause != WaitCycle || !slices.Equal(d.Findings[0].Cycle, []int{0, 1, 2}) ||
		d.Findings[0].Seconds != 9 ||
		!strings.Contains(d.Findings[0].Text, "cycle 0 → 1 → 2 → 0, closed for 7.0 s") ||
		!slices.Equal(d.Waiting, []int{0, 1, 2}) {
		t.Errorf("%s", d.Text())
	}
	d = Diagnose([]Source{{Status: one}, {Status: two},
		{Name: "daemon http://10.0.0.3:9627", Err: errors.New("connection refused")}}, MinWaitAge)
	if len(d.Findings) != 1 || d.Findings[0].Rank != 2 || len(d.Unknown) != 1 || len(d.Unanswered) != 1 {
		t.Errorf("%+v", d)
	}
	const last = "no answer: daemon http://10.0.0.3:9627: connection refused\n"
	if text := d.Text(); !strings.HasSuffix(text,
		"state not known: rank 2 at 10.0.0.3:2718: its host was not asked: name its daemon with --daemons\n"+last) {
		t.Errorf("%s", text)
	}
	if f := d.Findings[0]; !slices.Equal(f.Waiting, []int{0, 1}) ||
		!strings.Contains(f.TextBlock(), "also waiting because of it: rank 0\n") {
		t.Errorf("%+v\n%s", f, f.TextBlock())
	}
}

// TestNothing checks that brief waits, and waits of kernels for work, are not reported.
func TestNothing(t *testing.T) {
	s := status(3, host(0, peer(1, receiving(.9))), standin(1, peer(0, receiving(100))))
	d := Diagnose([]Source{{Status: s}}, MinWaitAge)
	if len(d.Findings)+len(d.Waiting) != 0 || d.Text() != "no rank has waited for longer than 1.0 s\n" {
		t.Errorf("%+v", d)
	}
	s = status(3, host(0, peer(1, receiving(9)), peer(2, receiving(.9))), host(1), host(2))
	if d := Diagnose([]Source{{Status: s}}, MinWaitAge); len(d.Findings) != 1 || d.Findings[0].Rank != 1 {
		t.Errorf("next to a long wait: %s", d.Text())
	}
}

// TestFor checks which findings of a diagnosis concern a rank.
func TestFor(t *testing.T) {
	s := status(5, host(0, peer(1, receiving(9))), host(1), host(2, peer(3, sending(handshake.WaitClear, 8))), host(3))
	d := Diagnose([]Source{{Status: s}}, MinWaitAge)
	if len(d.Findings) != 2 {
		t.Fatalf("%s", d.Text())
	}
	for rank, want := range []int{1, 1, 3, 3} {
		if only := d.ForRank(rank); len(only.Findings) != 1 || only.Findings[0].Rank != want {
			t.Errorf("rank %d: %s", rank, only.Text())
		}
	}
	if only := d.ForRank(4); len(only.Findings) != 0 {
		t.Errorf("%s", only.Text())
	}
	later := Diagnose([]Source{{Status: status(5, host(0, peer(1, receiving(99))), host(1),
		host(2, peer(3, sending(handshake.WaitClear, 98))), host(3))}}, MinWaitAge)
	if d.Fingerprint() != later.Fingerprint() || d.Fingerprint() == d.ForRank(0).Fingerprint() {
		t.Errorf("%q, %q", d.Fingerprint(), later.Fingerprint())
	}
}

// TestForeign checks that a status from another process may contain invalid values.
func TestForeign(t *testing.T) {
	r := inCall(host(7, peer(-5, receiving(9)), peer(99, sending(handshake.WaitClear, 9)), peer(1, receiving(9))),
		collective.Snapshot{
			Collective: "Bcast", Algorithm: "x", Root: new(77), Members: []int{-1, 500}, WaitsFor: []int{-3, 400},
			Seconds: 9,
		})
	s := status(8, host(1), r)
	s.Ranks = append(s.Ranks, host(0))
	s.Ranks[2].Rank = 1000
	s.Silent = []int{-4, 2000}
	if d := Diagnose([]Source{{Status: s}, {Status: &state.Status{}}}, 0); len(d.Findings) != 1 ||
		d.Findings[0].Rank != 1 {
		t.Errorf("%s", d.Text())
	}
}

// TestDocumented checks that the manual describes all causes.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Causes {
		if !strings.Contains(string(text), "`"+c.ID+"`") {
			t.Errorf("docs/operations.md does not have %s", c.ID)
		}
	}
}

// TestBrokenAlone checks that a stand-in whose kernel cannot continue is reported even if no rank is known to wait for
// it, and only once if one does.
func TestBrokenAlone(t *testing.T) {
	failed, faulty, computes := standin(1), standin(1), standin(1)
	failed.KernelState, failed.KernelError = state.KernelFailed, "exit status 1"
	faulty.Kernel, faulty.KernelBlockReason = "rtl:./role", "soMPI_data_tlast at cycle 70: not set"
	faulty.KernelStats = &state.Kernel{Simulation: &state.Simulation{Fault: true}}
	computes.Kernel, computes.KernelBlockReason = "exec:./role", "program ./role has made no call for 5s"
	for cause, r := range map[string]state.Rank{KernelFailed: failed, RoleHolds: faulty, "": computes} {
		d := Diagnose([]Source{{Status: status(2, r)}}, MinWaitAge)
		if cause == "" && len(d.Findings) == 0 {
			continue
		}
		if len(d.Findings) != 1 || d.Findings[0].Cause != cause || !d.Findings[0].Certain || d.Findings[0].Rank != 1 ||
			!strings.Contains(d.Text(), "which ranks wait for it is known on their hosts") {
			t.Errorf("%q: %s", cause, d.Text())
		}
		if d := Diagnose([]Source{{Status: status(2, host(0, peer(1, receiving(9))), r)}}, MinWaitAge); len(d.Findings) != 1 {
			t.Errorf("%q, and a rank waits: %s", cause, d.Text())
		}
	}
}

// TestPosted checks that a posted receive for which its program may not wait does not make a cycle certain, and that it
// is not compared with a message of a collective call.
func TestPosted(t *testing.T) {
	posted := receiving(9)
	of := func(awaited bool) *Diagnosis {
		r := had(host(1, peer(0, posted, with(func(p *state.Peer) {
			p.Receiving.Awaited = awaited
			p.Unexpected, p.Unmatched = 1, []state.Envelope{{Tag: new(0), Comm: 1, Bytes: 4}}
		}))), collective.EndedCall{Collective: "Barrier", Comm: 1, Number: 1})
		return Diagnose([]Source{{Status: status(2, inCall(host(0, peer(1)), call("Allreduce", 2, nil, 1)), r)}}, MinWaitAge)
	}
	if d := of(true); len(d.Findings) != 1 || d.Findings[0].Cause != WaitCycle || !d.Findings[0].Certain {
		t.Error(d.Text())
	}
	d := of(false)
	if len(d.Findings) != 1 || d.Findings[0].Certain ||
		!slices.ContainsFunc(d.Findings[0].Possible, func(p Possibility) bool {
			return p.Cause == ProgramComputes && p.Rank == 1
		}) {
		t.Error(d.Text())
	}
}

// TestOtherOperation checks that a packet that may have ended another operation of the rank, after it posted its
// receive, does not count as a retransmission by the peer.
func TestOtherOperation(t *testing.T) {
	for name, tt := range map[string]struct {
		ended   *float64
		sends   bool
		certain bool
	}{
		"nothing has ended": {nil, false, true}, "a send has ended since": {new(0.9), false, false},
		"a send has ended before": {new(8.0), false, true}, "a send is pending": {nil, true, false},
	} {
		r := host(0, peer(1, receiving(9), fpga, with(func(p *state.Peer) {
			p.SinceLastPacket, p.Sent = new(0.45), 1
			if tt.sends {
				p.Sending = &state.Wait{State: handshake.WaitAck, WaitsFor: protocol.Ack, Seconds: 1,
					Envelope: state.Envelope{Bytes: 4}}
			}
		})))
		r.Engine.SinceLastEnd = tt.ended
		d := Diagnose([]Source{{Status: status(2, r)}}, 2*MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Certain != tt.certain || tt.certain &&
			d.Findings[0].Cause != PacketsBlocked {
			t.Errorf("%s: %s", name, d.Text())
		}
	}
}

// TestPostedBeside checks that a posted operation is not a wait if the caller waits for another operation.
func TestPostedBeside(t *testing.T) {
	r := host(0, peer(1, sending(handshake.WaitClear, 9), receiving(9),
		with(func(p *state.Peer) { p.Receiving.Awaited = false })))
	d := Diagnose([]Source{{Status: status(2, r, standin(1, peer(0, receiving(9), with(func(p *state.Peer) {
		p.Receiving.Deferred, p.Receiving.Envelope.Datatype = state.CallOf(protocol.SendInt),
			state.DatatypeOf(protocol.Float)
	}))))}}, MinWaitAge)
	if len(d.Findings) != 1 || d.Findings[0].Cause != DatatypeMismatch || d.Findings[0].Call != Send {
		t.Error(d.Text())
	}
}

// TestStandinAlone checks the findings from the status of a stand-in's daemon alone: its role has failed, or receives a
// message that does not match.
func TestStandinAlone(t *testing.T) {
	other := standin(1, peer(0, receiving(9), with(func(p *state.Peer) {
		p.Receiving.Deferred, p.Receiving.Envelope.Datatype = state.CallOf(protocol.SendInt),
			state.DatatypeOf(protocol.Float)
	})))
	failed := standin(1, peer(0))
	failed.Kernel, failed.KernelBlockReason, failed.KernelStats = "exec:./role", "program ./role failed 2 s ago",
		&state.Kernel{Failed: true}
	for cause, r := range map[string]state.Rank{DatatypeMismatch: other, RoleHolds: failed} {
		if d := Diagnose([]Source{{Status: status(2, r)}}, MinWaitAge); len(d.Findings) != 1 ||
			d.Findings[0].Cause != cause ||
			!d.Findings[0].Certain {
			t.Errorf("%s: %s", cause, d.Text())
		}
	}
	again := status(2, host(0, peer(1, receiving(9))), standin(1, peer(0, receiving(9))))
	again.Uptime = 100
	again.Failures = []state.Failure{{Rank: 1, Time: again.Started.Add(90 * time.Second), Reason: "exit status 3"}}
	d := Diagnose([]Source{{Status: again}}, MinWaitAge)
	if len(d.Findings) != 1 || d.Findings[0].Certain || len(d.Findings[0].Possible) != 2 ||
		!strings.Contains(d.Text(), "the kernel of stand-in 1 has failed, and begun again (exit status 3)") {
		t.Error(d.Text())
	}
}

// TestEarlierProgram checks that neither a cycle nor a rank that computes is certain if an earlier program of a rank
// ended in the middle.
func TestEarlierProgram(t *testing.T) {
	const uptime, before, since = 900, 60, 9
	exchanged := with(func(p *state.Peer) { p.Sent = 1 })
	barrier := call("Barrier", 1, nil, 0)
	receives := func(options ...peerOption) []state.Rank {
		return []state.Rank{host(0, peer(1, receiving(since))), host(1, peer(0, append(options, receiving(since))...))}
	}
	inBarrier := inCall(host(1, peer(0)), barrier)
	ended := collective.EndedCall{Collective: "Barrier", Comm: 1, Number: 1, Bytes: 16}
	for name, tt := range map[string]struct {
		age, ended float64 // seconds since the program of rank 1 began, and since its last operation ended
		again      bool
		ranks      []state.Rank
	}{
		"cycle":                   {before, 30, false, receives(exchanged)},
		"cycle, of a younger one": {before / 2, 30, true, receives(exchanged)},
		"nothing was exchanged":   {before / 2, 30, false, receives()},
		"cycle, ended before":     {before - .2, before - .1, true, receives(exchanged)},
		"known at that rank alone": {before - .2, before - .1, true,
			[]state.Rank{host(1, peer(0, sending(handshake.WaitClear, since), exchanged))}},
		"a call that has ended":      {before, 30, true, []state.Rank{had(host(0, peer(1)), ended), inBarrier}},
		"a call that was not called": {before, 30, false, []state.Rank{host(0, peer(1)), inBarrier}},
	} {
		for i := range tt.ranks {
			r := &tt.ranks[i]
			r.Engine.Uptime, r.Attached[0].Seconds = uptime, before
			if r.Rank == 1 {
				r.Engine.SinceLastEnd, r.Attached[0].Seconds = &tt.ended, tt.age
			} else {
				r.Engine.SinceLastEnd = new(30.0)
			}
		}
		d := Diagnose([]Source{{Status: status(2, tt.ranks...)}}, MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Certain == tt.again ||
			tt.again != slices.ContainsFunc(d.Findings[0].Possible,
				func(p Possibility) bool { return string(p.Cause) == Restarted && p.Rank == 1 }) {
			t.Errorf("%s: %s", name, d.Text())
		}
		if n := strings.Count(d.Text(), "the program of rank 1 began 30.0 s ago"); n != 1 && tt.age == before/2 && tt.again {
			t.Errorf("%s: %d times in %s", name, n, d.Text())
		}
	}
}

// TestSentAhead checks that a message with another tag is a certain mismatch only if its sender is known to wait for
// the receiver.
func TestSentAhead(t *testing.T) {
	receiver := host(0, peer(1, receiving(9), with(func(p *state.Peer) {
		p.Receiving.Envelope.Tag, p.Unexpected, p.Unmatched = new(5), 1, []state.Envelope{{Tag: new(7), Bytes: 4}}
	})), peer(2))
	for name, tt := range map[string]struct {
		ranks []state.Rank
		want  string
	}{
		"waits for the receiver": {[]state.Rank{receiver, host(1, peer(0, receiving(9)))}, ""},
		"computes":               {[]state.Rank{receiver, host(1, peer(0))}, "tag_mismatch program_computes"},
		"waits for another": {[]state.Rank{receiver, host(1, peer(2, receiving(9))), host(2)},
			"tag_mismatch waits_elsewhere"},
		"is not known": {[]state.Rank{receiver}, "tag_mismatch program_computes waits_elsewhere"},
	} {
		d := Diagnose([]Source{{Status: status(3, tt.ranks...)}}, MinWaitAge)
		i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Cause == TagMismatch })
		if i < 0 {
			t.Errorf("%s: %s", name, d.Text())
			continue
		}
		var left []string
		for _, p := range d.Findings[i].Possible {
			left = append(left, string(p.Cause))
		}
		if got := strings.Join(left, " "); got != tt.want || d.Findings[i].Certain != (tt.want == "") {
			t.Errorf("%s: %s", name, d.Text())
		}
	}
}

// TestReports checks what follows from the counters of a single peer.
func TestReports(t *testing.T) {
	p := &state.Peer{LastDrop: &state.Drop{Reason: state.DropShort}, Dropped: state.DropCounts{state.DropShort: 2}}
	if s := dropEvidence(0, 1, p); !strings.Contains(s, "rank 0 has dropped 2 packets from") {
		t.Error(s)
	}
	if _, stalls := (side{senderReport: &state.Peer{Extended: &state.Extended{Hellos: 3,
		Queued: 1}}}).stallTime(); !stalls {
		t.Error("three HELLOs without an answer do not count as a stall")
	}
	if everHeard(p) || !everHeard(&state.Peer{PacketsIn: 1}) { // daemons of earlier versions do not report when
		t.Error("one packet counts as heard")
	}
}

// TestLeft checks that a receive whose sender has ended its send, and has a program, has lost the message's DATA, or
// that the sender has begun again.
func TestLeft(t *testing.T) {
	for _, in := range []handshake.State{handshake.WaitData, handshake.Receiving} {
		receives := with(func(p *state.Peer) { p.Receiving.State = in })
		d := Diagnose([]Source{{Status: status(2, host(0, peer(1, receiving(9), receives)), host(1, peer(0)))}}, MinWaitAge)
		if len(d.Findings) != 1 || len(d.Findings[0].Possible) != 2 || !possible(&d.Findings[0], LostPacket) ||
			!possible(&d.Findings[0], Restarted) {
			t.Errorf("%v: %s", in, d.Text())
		}
	}
}
