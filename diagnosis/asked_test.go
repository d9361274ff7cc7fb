package diagnosis

import (
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// asked returns the answer of a rank that was asked over a link.
func asked(r state.Rank) state.AskResult {
	return state.AskResult{Rank: r.Rank, Report: state.PublicOf(&r)}
}

// TestAsked checks that ranks that were asked over links count like others, and that the diagnosis says why a rank has
// not answered.
func TestAsked(t *testing.T) {
	waits := func(rank int) state.Rank {
		return host(rank, peer(1-rank, receiving(9), extended(state.Extended{PeerSession: 1})))
	}
	idle := host(1, peer(0, extended(state.Extended{PeerSession: 1})))
	cut := asked(idle)
	cut.Report.CutShort = true
	noProgram, stopped := idle, idle
	noProgram.Attached = nil
	stopped.Attached = []state.Program{{PID: 17, Stopped: true}}
	ended := standin(1)
	ended.KernelState = state.KernelEnded
	role := standin(1)
	role.KernelBlockReason = "soMPIif_tvalid since cycle 16 (now 99): low: the role makes no call"
	for name, tt := range map[string]struct {
		asked  []state.AskResult
		err    error
		cause  string
		text   string
		reason string
	}{
		"a cycle": {asked: []state.AskResult{asked(waits(1))}, cause: WaitCycle, text: "cycle 0 → 1 → 0"},
		"it computes": {asked: []state.AskResult{asked(idle)}, cause: ProgramComputes,
			text: "rank 1 runs and waits for nothing"},
		"no program": {asked: []state.AskResult{asked(noProgram)}, cause: NotAttached, text: "no program uses rank 1"},
		"stopped": {asked: []state.AskResult{asked(stopped)}, cause: ProcessStopped,
			text: "process 17, which is rank 1, is stopped"},
		"a kernel ended": {asked: []state.AskResult{asked(ended)}, cause: KernelFailed,
			text: "the kernel echo of stand-in 1 is no longer running"},
		"a role holds": {asked: []state.AskResult{asked(role)}, cause: RoleHolds, text: "soMPIif_tvalid since cycle 16"},
		"cut short": {asked: []state.AskResult{cut}, cause: StateUnknown,
			text: "rank 1 waits for more than it has reported"},
		"no answer": {asked: []state.AskResult{{Rank: 1, Reason: mpe.ErrNoReport.Error()}}, cause: StateUnknown,
			text:   "what rank 1 waits for is not known here: it has not answered",
			reason: "it has not answered the question for a report: name its daemon with --daemons"},
		"not asked": {err: errors.New("an older daemon"), cause: StateUnknown,
			text:   "what rank 1 waits for is not known here; 6 causes are possible",
			reason: "it was not asked: an older daemon: name its daemon with --daemons"},
		"another's": {asked: []state.AskResult{{Rank: 7}, {Rank: -1}, asked(waits(0))}, cause: StateUnknown,
			text:   "what rank 1 waits for is not known here; 6 causes are possible",
			reason: "its host was not asked: name its daemon with --daemons"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Diagnose([]Source{{Status: status(2, waits(0)), Asked: tt.asked, AskErr: tt.err}}, MinWaitAge)
			if len(d.Findings) != 1 || d.Findings[0].Cause != tt.cause ||
				!strings.Contains(d.Findings[0].Text, tt.text) {
				t.Errorf("%+v\n%s", d.Findings, d.Text())
			}
			if tt.reason == "" && len(d.Unknown) > 0 ||
				tt.reason != "" && (len(d.Unknown) != 1 || d.Unknown[0].Reason != tt.reason) {
				t.Errorf("%+v", d.Unknown)
			}
		})
	}
}

// TestUnanswered checks that an engine that does not answer a question counts as silent only towards the rank that
// asked.
func TestUnanswered(t *testing.T) {
	quiet := with(func(p *state.Peer) { p.SinceLastPacket = new(9.0) })
	for by, cause := range []string{PeerSilent, StateUnknown} {
		by *= 2
		asked := []state.AskResult{{Rank: 1, AskedBy: by, Reason: mpe.ErrNoReport.Error(), Unanswered: true}}
		waits := host(0, peer(1, receiving(9), extended(state.Extended{PeerSession: 1}), quiet))
		d := Diagnose([]Source{{Status: status(3, waits), Asked: asked}}, MinWaitAge)
		if len(d.Findings) != 1 || d.Findings[0].Cause != cause {
			t.Errorf("rank %d has asked: %s", by, d.Text())
		}
	}
}

// TestAskedWithoutWaits checks that ranks that have not answered are named even if no rank waits for them, up to a
// limit. Deployed nodes are not named.
func TestAskedWithoutWaits(t *testing.T) {
	const size = maxUnknown + 10
	var list []state.AskResult
	for rank := 1; rank < size; rank++ {
		list = append(list, state.AskResult{Rank: rank, Reason: "it has not answered"})
	}
	s := status(size, host(0))
	s.Cluster[2].Kind = "fpga"
	d := Diagnose([]Source{{Status: s, Asked: list}}, MinWaitAge)
	if len(d.Findings) != 0 || len(d.Unknown) != size-2 || d.Unknown[1].Rank != 3 {
		t.Errorf("%+v", d)
	}
	if text := d.Text(); strings.Count(text, "state not known") != maxUnknown+1 ||
		!strings.Contains(text, "state not known: 8 ranks more\n") {
		t.Error(text)
	}
	d = Diagnose([]Source{{Status: s, AskErr: errors.New("an older daemon")}}, MinWaitAge)
	if len(d.Unknown) != size-2 ||
		d.Unknown[0].Reason != "it was not asked: an older daemon: name its daemon with --daemons" {
		t.Errorf("%+v", d.Unknown)
	}
	// The status of the rank itself takes precedence.
	d = Diagnose([]Source{{Status: s, Asked: list[:1]}, {Status: status(size, host(1))}}, MinWaitAge)
	if len(d.Unknown) != 0 {
		t.Errorf("%+v", d.Unknown)
	}
}
