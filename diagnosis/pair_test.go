package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

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

// TestUnknownSenders checks that packets dropped because their address is not in the rank map are mentioned even if no
// rank is known to wait.
func TestUnknownSenders(t *testing.T) {
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

// TestRetransmittedData checks that a peer counts as blocked in an earlier send only while it retransmits the message:
// it has done so more than once, a moment ago, and has sent nothing else since.
func TestRetransmittedData(t *testing.T) {
	for name, tt := range map[string]struct {
		count       int
		last, heard float64
		certain     bool
	}{
		"retransmits": {2, 0.45, 0.45, true}, "one may be late": {1, 0.45, 0.45, false},
		"no longer": {3, 1.5, 1.5, false}, "sends something else": {3, 0.9, 0.45, false},
	} {
		for _, kind := range []func(*state.Peer){fpga, with(func(*state.Peer) {})} {
			r := host(0, peer(1, receiving(9), kind, with(func(p *state.Peer) {
				p.LostAcks, p.SinceLastPacket, p.Received = &state.LostAcks{Count: tt.count, Seconds: tt.last}, &tt.heard, 1
			})))
			d := Diagnose([]Source{{Status: status(2, r)}}, 2*MinWaitAge)
			if len(d.Findings) != 1 || d.Findings[0].Certain != tt.certain || tt.certain &&
				(d.Findings[0].Cause != PacketsBlocked || d.Findings[0].Rank != 0) {
				t.Errorf("%s: %s", name, d.Text())
			}
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

// TestSenderDone checks that a receive whose sender has ended its send, and has a program, has lost the message's DATA,
// or that the sender has begun again.
func TestSenderDone(t *testing.T) {
	for _, in := range []handshake.State{handshake.WaitData, handshake.Receiving} {
		receives := with(func(p *state.Peer) { p.Receiving.State = in })
		d := Diagnose([]Source{{Status: status(2, host(0, peer(1, receiving(9), receives)), host(1, peer(0)))}}, MinWaitAge)
		if len(d.Findings) != 1 || len(d.Findings[0].Possible) != 2 || !possible(&d.Findings[0], LostPacket) ||
			!possible(&d.Findings[0], Restarted) {
			t.Errorf("%v: %s", in, d.Text())
		}
	}
}
