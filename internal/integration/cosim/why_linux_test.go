package cosim_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"
	"github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
)

var write = flag.Bool("write", false, "write the results to docs/reliability.md and docs/data")

// Call codes of kernel exec.
const (
	sendInt   = 0
	recvInt   = 1
	recvFloat = 3
	barrier   = 4
)

// makesCall returns a shell command that writes a call, followed by the data of a send.
func makesCall(code byte, count, rank uint32, data ...byte) string {
	b := []byte{code, byte(count), byte(count >> 8), byte(count >> 16), byte(count >> 24), byte(rank), byte(rank >> 8),
		byte(rank >> 16), byte(rank >> 24)}
	return writes(append(b, data...)...)
}

func writes(b ...byte) string {
	line := "printf '"
	for _, c := range b {
		line += fmt.Sprintf(`\%03o`, c)
	}
	return line + "'\n"
}

// reads returns a shell command that reads the feedback of a call, and then the given number of words.
func reads(words int) string { return fmt.Sprintf("head -c %d >/dev/null\n", 5+4*words) }

const waits = "exec sleep 1000\n"

// roleFault is a fault of the role of rank 1, a stand-in. Rank 0 sends messages to it and waits for the echoes.
type roleFault struct {
	name string
	// script is the program of kernel exec. A simulated role has instead a simulator, and the number of words of the
	// messages.
	script    string
	simulator string
	words     int
	// text is a substring of the finding of the stand-in's daemon. causes are its accepted causes, by default RoleHolds
	// and Restarted.
	text   string
	causes []string
}

// fromHost lists the causes that the host's daemon, which only sees packets, may name for a fault.
var fromHost = []string{
	diagnosis.ProgramComputes, diagnosis.ProcessEnded, diagnosis.Restarted, diagnosis.OtherCall, diagnosis.WaitsElsewhere,
	diagnosis.WaitCycle, diagnosis.CountMismatch,
}

var roleFaults = []roleFault{
	{name: "exits with a status", script: makesCall(recvInt, 8, 0) + reads(4) + "exit 3\n", text: "exit status 3"},
	{name: "is killed by a signal", script: makesCall(recvInt, 8, 0) + reads(4) + "kill -SEGV $$\n",
		text: "segmentation fault"},
	{name: "ends", script: makesCall(recvInt, 8, 0) + reads(4), text: "is no longer running",
		causes: []string{diagnosis.KernelFailed}},
	{name: "makes no call", script: waits, text: "has made no call since"},
	{name: "prints text", script: "echo result: 5\n" + waits, text: "has written the text"},
	{name: "has the other byte order", script: writes(recvInt, 0, 0, 0, 8, 0, 0, 0, 0) + waits,
		text: "read as big-endian"},
	{name: "writes half a call", script: writes(recvInt, 8, 0, 0) + waits, text: "wrote 4 of 9 bytes of a call"},
	{name: "writes half of the data",
		script: makesCall(recvInt, 8, 0) + reads(4) + makesCall(sendInt, 4, 0, make([]byte, 8)...) + waits,
		text:   "wrote 8 of 16 bytes of the data"},
	{name: "receives the other datatype", script: makesCall(recvFloat, 8, 0) + waits,
		text:   "INT and FLOAT do not match",
		causes: []string{diagnosis.DatatypeMismatch}},
	{name: "receives fewer words", script: makesCall(recvInt, 2, 0) + waits,
		text: "rank 0 sent 4 words, but the posted buffer holds 2"},
	{name: "receives more than it may", script: makesCall(recvInt, 1<<24, 0) + waits, text: "16777216"},
	{name: "receives from a rank that is not there", script: makesCall(recvInt, 8, 77) + waits,
		text: "rank 77: no such peer"},
	{name: "receives from another rank", script: makesCall(recvInt, 8, 2) + waits, text: "rank 2",
		causes: []string{diagnosis.WaitsElsewhere, diagnosis.KernelWaits, diagnosis.ProgramComputes}},
	{name: "sends to another rank", script: makesCall(sendInt, 1, 2, 1, 2, 3, 4) + waits, text: "rank 2",
		causes: []string{diagnosis.WaitsElsewhere, diagnosis.ProgramComputes, diagnosis.ProcessEnded}},
	{name: "sends where the host sends", script: makesCall(sendInt, 1, 0, 1, 2, 3, 4) + waits, text: "rank 0",
		causes: []string{diagnosis.WaitCycle}},
	{name: "receives twice", script: makesCall(recvInt, 8, 0) + reads(4) + makesCall(recvInt, 8, 0) + waits,
		text:   "rank 0",
		causes: []string{diagnosis.KernelWaits, diagnosis.WaitCycle}},
	{name: "makes two calls at once", script: makesCall(recvInt, 8, 0) + makesCall(recvInt, 8, 0) + waits,
		text:   "rank 0",
		causes: []string{diagnosis.KernelWaits, diagnosis.WaitCycle}},
	{name: "calls BARRIER", script: makesCall(barrier, 0, 0) + waits, text: "barrier not supported"},
	{name: "reads no feedback", script: makesCall(recvInt, 8, 0) + waits, text: "has made no call for"},
	{name: "computes", script: makesCall(recvInt, 8, 0) + reads(4) + waits, text: "has made no call for"},
}

// rolesInSimulation returns the roles of TestFaultyRoles, and roles that break a rule of their streams, in VHDL.
func rolesInSimulation(t *testing.T) (list []roleFault) {
	t.Helper()
	broken := brokenRole(t, "vhdl")[0]
	for name, tt := range faultyRoles {
		list = append(list, roleFault{name: name + " in simulation", words: tt.words, text: tt.text,
			simulator: build(t, "vhdl", tt.changes...)})
	}
	for number, rule := range streamRules {
		if rule.problem == "follows tready" { // it does not stop the messages
			continue
		}
		list = append(list, roleFault{name: fmt.Sprintf("%s: %s", rule.signal, rule.problem), words: 2 * number,
			text: rule.signal, simulator: broken})
	}
	slices.SortFunc(list, func(a, b roleFault) int { return strings.Compare(a.name, b.name) })
	return list
}

// askedAt names the daemons to ask: the stand-in's, the host's, or both.
var askedAt = []string{"stand-in", "host", "both"}

// TestWhyRoles checks that the stand-in's daemon names a fault of its role, and that the host's daemon includes the
// fault in its list of causes.
func TestWhyRoles(t *testing.T) {
	faults := slices.Concat(roleFaults, rolesInSimulation(t))
	answers := make([][]verdict.Verdict, len(faults))
	t.Run("faults", func(t *testing.T) {
		for i := range faults {
			t.Run(faults[i].name, func(t *testing.T) {
				kernel := faults[i].kernel(t) // before the daemons start, because they change the umask for a moment
				t.Parallel()
				answers[i] = faults[i].explained(t, kernel)
			})
		}
	})
	if !*write {
		return
	}
	var counts [3]verdict.Counts
	kinds := [][]string{{"the role", "at the stand-in's daemon", "at the host's", "at both"}}
	for i := range faults {
		row := []string{faults[i].name}
		for j, v := range answers[i] {
			row = append(row, v.String())
			counts[j][v]++
		}
		kinds = append(kinds, row)
	}
	totals := [][]string{append([]string{"asked at"}, verdict.Columns...)}
	for j, c := range counts {
		totals = append(totals, append([]string{kinds[0][j+1]}, c.Cells()...))
	}
	title := fmt.Sprintf("%d faults of roles", len(faults))
	if err := verdict.Write("../../../docs/reliability.md", "roles", title, totals, kinds); err != nil {
		t.Fatal(err)
	}
}

// kernel returns the kernel setting of the stand-in, and further settings of its rank.
func (f *roleFault) kernel(t *testing.T) string {
	t.Helper()
	if f.simulator != "" {
		return role(f.simulator, "seed=1", "")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+f.script), 0o700); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("\"exec:%s\", kernel_options: {words: 8192}", path)
}

// explained diagnoses the fault once the host has waited for a while, and returns a verdict for each of askedAt.
func (f *roleFault) explained(t *testing.T, kernel string) []verdict.Verdict {
	net, log := loopback.Network(t), daemon.Options{Log: zap.NewNop()}
	const more = "defaults: {profile: cloudfpga, deadlines: {clear: 2m, data: 2m, ack: 2m}}"
	third := ", address: " + net + "3"
	standin := daemontest.Start(t, log, more, "peer: software, address: "+net+"1",
		fmt.Sprintf("run: standin, address: %s2, kernel: %s", net, kernel), "peer: fpga"+third)
	host := daemontest.Start(t, log, more, "run: host, address: "+net+"1", "peer: fpga, address: "+net+"2",
		"peer: fpga"+third)
	ctx, cancel := context.WithCancel(t.Context())
	var exchange sync.WaitGroup
	defer exchange.Wait()
	defer cancel()
	exchange.Go(func() {
		for message := make([]byte, 4*cmp.Or(f.words, 4)); ctx.Err() == nil; {
			if f.simulator != "" { // Ping sends and receives at the same time
				_ = host.Client.Ping(ctx,
					control.PingRequest{From: 0, To: 1, Words: f.words, Count: 100, Datatype: "int", Timeout: "0s"},
					func(control.Trip) error { return nil })
				continue
			}
			_, _ = host.Client.Send(ctx, control.SendRequest{From: 0, To: 1}, bytes.NewReader(message))
			_, _, _ = host.Client.Recv(ctx, control.RecvRequest{From: 1, To: 0, Words: len(message) / 4})
		}
	})
	source := func(d *daemontest.TestDaemon) diagnosis.Source {
		s, err := d.Client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return diagnosis.Source{Name: d.Socket, Status: &s}
	}
	var asked [3]*diagnosis.Diagnosis
	until(t, "the host to wait because of "+f.text, func() bool {
		both := []diagnosis.Source{source(standin), source(host)}
		for i, from := range [][]diagnosis.Source{both[:1], both[1:], both} { // of the same states
			asked[i] = diagnosis.Diagnose(from, diagnosis.MinWaitAge)
		}
		return len(asked[1].Findings) > 0 && asked[1].Findings[0].Seconds > 2 &&
			strings.Contains(asked[2].Text(), f.text)
	})
	var answers []verdict.Verdict
	for i, d := range asked {
		causes := f.causes
		if causes == nil {
			causes = []string{diagnosis.RoleHolds, diagnosis.Restarted}
		}
		if i == 1 {
			causes = fromHost
		}
		is := verdict.Compare(d, func(cause string, rank, peer int) bool {
			return slices.Contains(causes, cause) && (rank == 1 || peer == 1 || cause == diagnosis.WaitCycle)
		})
		// The stand-in's daemon does not know in which receive the host waits, so it may be silent.
		switch unknown := i == 0 && asked[1].Findings[0].Call == diagnosis.Recv; {
		case unknown && is == verdict.Silent:
		case is > verdict.Listed, i != 1 && !strings.Contains(d.Text(), f.text):
			t.Errorf("%v at %s, want %v with %q\n%s", is, askedAt[i], causes, f.text, d.Text())
		default:
			t.Logf("%v at %s\n%s", is, askedAt[i], d.Text())
		}
		answers = append(answers, is)
	}
	return answers
}
