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
			"the FPGA at 10.0.0.2:2718 runs its role and has this rank map; then check the network with \"ping 10.0.0.2\" " +
				"(the system's; zrlctl ping is safe only if the rank runs an echo kernel"},
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

// TestForRank checks which findings of a diagnosis concern a rank.
func TestForRank(t *testing.T) {
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
