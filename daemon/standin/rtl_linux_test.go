package standin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// rtl returns the specification of a kernel whose simulator is one of the programs in this test binary.
func rtl(t *testing.T, program ...string) string {
	return "rtl" + strings.TrimPrefix(spec(t, program...), "exec")
}

func TestRTL(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, rtl(t, "sim-echo"), config.KernelOptions{Words: 8})
	c.send(1, words(9, 1), protocol.Int) // longer than its receive: the message is lost, and the receive repeated
	for _, n := range []int{8, 3} {
		c.send(1, words(n, uint32(n)), protocol.Int)
		c.recv(1, words(n, uint32(n)), protocol.Int)
	}
	if err := k.wait(t); err != nil {
		t.Errorf("the end of the work is %v", err)
	}
	s := k.Kernel.Stats()
	if s.Starts != 1 || s.Errors != 1 || s.Simulation == nil || s.Simulation.Cycle == 0 || s.Simulation.Fault {
		t.Errorf("stats %+v, %+v", s, s.Simulation)
	}
	failed := k.logs.FilterMessage("call of the role failed").All()
	if len(failed) != 1 || !strings.Contains(failed[0].ContextMap()["error"].(string),
		"soMPIif has a count of 8 words at cycle") {
		t.Errorf("logged %+v", failed)
	}
	if broken := k.brokenExchanges(); len(broken) != 1 || !errors.Is(broken[0], handshake.ErrTruncated) {
		t.Errorf("broken exchanges %v", broken)
	}
}

// TestRTLErrors checks that a simulator that breaks the exchange is stopped and restarted. The error states the
// problem, the time and advice.
func TestRTLErrors(t *testing.T) {
	head := func(b ...byte) string { return string(b) }
	for name, tt := range map[string]struct {
		program []string
		want    []string
	}{
		"another version": {[]string{"sim-version"}, []string{"has frame version 7", "zrlctl cosim new"}},
		"no hello": {[]string{"sim-silent"},
			[]string{"not answered for 1s after cycle 0", "raise time_scale"}},
		"ends at once": {[]string{"sim-no-hello"}, []string{"the simulator ended after cycle 0", "exit status 4"}},
		"hangs": {[]string{"sim-hangs"},
			[]string{"not answered for 1s after cycle 10, in RECV_INT of 8 words from rank 0 (cycle 0)"}},
		"ends": {[]string{"sim-ends"},
			[]string{"the simulator ended after cycle 20, in RECV_INT of 8 words", "exit status 3"}},
		"ends with 0": {[]string{"sim-stops"}, []string{"the simulator ended after cycle 20, in RECV_INT"}},
		"another frame": {[]string{"sim-writes", head(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)},
			[]string{"after cycle 0", "malformed frame"}},
		"unexpected lines":  {[]string{"sim-lies"}, []string{"after cycle 0", "malformed frame", "1 lines of 0"}},
		"half of an answer": {[]string{"sim-writes", "\x04"}, []string{"not answered for 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2)
			defer c.close()
			k := c.prepare(rtl(t, tt.program...), config.KernelOptions{Words: 8})
			start, answer := time.Minute, time.Minute
			switch {
			case name == "no hello":
				start = time.Second
			case strings.Contains(tt.want[0], "not answered"):
				answer = time.Second
			}
			standin.SetLimits(k.Kernel, start, answer)
			c.start(1, k)
			until(t, "the failure", func() bool { return len(k.failures()) > 0 })
			for _, want := range tt.want {
				if text := k.failures()[0]; !strings.Contains(text, want) {
					t.Errorf("failed with %q, want %q in it", text, want)
				}
			}
			if broken := k.brokenExchanges(); len(broken) == 0 || !strings.Contains(broken[0].Error(), tt.want[0]) {
				t.Errorf("broken exchanges %v", broken)
			}
			until(t, "the second start", func() bool { return k.Kernel.Stats().Starts > 1 })
			k.cancel(t)
		})
	}
}

// TestRTLFault checks that a role that breaks the rules of its interface is reported, and that the simulation
// continues.
func TestRTLFault(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.run(1, rtl(t, "sim-faulty"), config.KernelOptions{Words: 8})
	cycle := func() uint64 {
		simulation, cycle := k.Kernel.(standin.Simulated).Cycle()
		if cycle > 0 && simulation != 1 {
			t.Errorf("simulation %d is at cycle %d", simulation, cycle)
		}
		return cycle
	}
	until(t, "cycles after the fault", func() bool { return cycle() > 100 })
	s := k.Kernel.Stats()
	if !s.Simulation.Fault || s.Simulation.Signal != "soMPIif_tdata" || s.Errors != 1 || s.Starts != 1 {
		t.Errorf("%+v, %+v", s, s.Simulation)
	}
	if text := s.Simulation.BlockReason(); text != "soMPIif_tdata at cycle 0: rank is 9: the cluster has ranks 0 to 1" {
		t.Errorf("it says %q", text)
	}
	if broken := k.brokenExchanges(); len(broken) != 1 || !strings.Contains(broken[0].Error(), "rank is 9") {
		t.Errorf("broken exchanges %v", broken)
	}
	k.cancel(t)
}

func TestRTLTimeScale(t *testing.T) {
	c := newCluster(t, 2)
	defer c.close()
	k := c.prepare(strings.Replace(rtl(t, "sim-silent"), ":", ":time_scale=60 ", 1), config.KernelOptions{})
	if start, answer := standin.Limits(k.Kernel); start != time.Hour || answer != 10*time.Minute {
		t.Errorf("limits %v and %v", start, answer)
	}
	c.start(1, k)
	until(t, "the log", func() bool { return k.logs.FilterMessage("timeouts stretched").Len() == 1 })
	k.cancel(t)
}
