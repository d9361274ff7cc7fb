package cosim_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
)

// broken is the log message for a role that breaks a rule.
const broken = "role violates the rules of its interface"

// onLast returns a change of a role's behaviour on the last line of a message.
func onLast(to string) change {
	return change{"              if line = last_line then\n                out_last <= '1';",
		"              if line = last_line then\n                " + to}
}

// faultyRoles maps faults to the changes that introduce them into the sound role.
var faultyRoles = map[string]struct {
	changes []change
	words   int
	signal  string
	text    string // in the cause
	logged  string // message of the finding in the log
}{
	"drops last": {
		[]change{onLast("out_last <= '0';")}, 1000, "soMPI_data_tlast at cycle",
		"not set on line 500 of 500 of SEND_INT of 1000 words to rank 0", broken,
	},
	"last too early": {
		[]change{{"if line = last_line then\n                out_last <= '1';",
			"if line = last_line - 1 then\n                out_last <= '1';"}}, 1000,
		"soMPI_data_tlast at cycle", "set 2 words too early, on line 499 of 500", broken,
	},
	"one word short": {
		[]change{onLast("out_last <= '1';\n                soMPI_data_tkeep <= x\"0f\";")}, 1000,
		"soMPI_data_tkeep at cycle", "0x0f, and not 0xff, on line 500 of 500", broken,
	},
	"never ready": {
		[]change{
			{"siMPI_data_tready <= '1' when state = receive else '0';", "siMPI_data_tready <= '0';"},
			{"if siMPI_data_tvalid = '1' then", "if siMPI_data_tvalid = '1' and siMPI_data_tready = '1' then"},
		}, 9,
		"siMPI_data_tready since cycle", "low, with line 1 of 5 of RECV_INT of 8192 words from rank 0",
		"role stalls a message",
	},
	"takes no feedback": {
		[]change{
			{"siMPIFeB_tready   <= '1' when state = recv_end or state = send_end else '0';", "siMPIFeB_tready <= '0';"},
			{"if siMPIFeB_tvalid = '1' then\n              state <= call_send;",
				"if siMPIFeB_tvalid = '1' and siMPIFeB_tready = '1' then\n              state <= call_send;"},
		}, 9,
		"siMPIFeB_tready since cycle", "low, with the feedback of RECV_INT", "role stalls a message",
	},
	"makes no call": {
		[]change{{"              call_valid <= '1';", "              call_valid <= '0';"}}, 9,
		"soMPIif_tvalid since cycle", "the role makes no call", "",
	},
}

// TestFaultyRoles checks that the signal and the cycle of a role's bug are reported: as in checkFault if the role
// breaks a rule, and otherwise in the diagnosis and the log.
func TestFaultyRoles(t *testing.T) {
	for name, tt := range faultyRoles {
		t.Run(name, func(t *testing.T) {
			c := start(t, build(t, "vhdl", tt.changes...), "seed=1", "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.logged == broken {
				checkFault(t, c, tt.words, tt.signal, tt.text)
				return
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = c.Client.Ping(ctx, control.PingRequest{From: 0, To: 1, Words: tt.words, Count: 1, Datatype: "int",
					Timeout: "0s"}, func(control.Trip) error { return nil })
			}()
			var found diagnosis.Finding
			until(t, "the cause", func() bool {
				s, err := c.Client.Status(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range diagnosis.Diagnose([]diagnosis.Source{{Status: &s}}, 200*time.Millisecond).Findings {
					if f.Cause == diagnosis.RoleHolds && strings.Contains(f.Text, tt.text) {
						found = f
					}
				}
				return found.Text != ""
			})
			if !strings.Contains(found.Text, tt.signal) {
				t.Errorf("%s does not name the signal: want %s", found.Text, tt.signal)
			}
			// The role leaves reset in cycle 16. Its signals do not change before its first transfer.
			m := regexp.MustCompile(`since cycle (\d+)`).FindStringSubmatch(found.Text)
			if m == nil {
				t.Fatalf("%s names no cycle", found.Text)
			}
			if cycle, _ := strconv.Atoi(m[1]); cycle < 16 != (name == "makes no call") {
				t.Errorf("%s: cycle %d", found.Text, cycle)
			}
			if tt.logged != "" {
				until(t, "the finding", func() bool { return strings.Contains(c.said(), tt.logged) })
				if said := c.said(); !strings.Contains(said, strings.Fields(tt.signal)[0]) ||
					!strings.Contains(said, tt.text) {
					t.Errorf("logged:\n%s", said)
				}
			}
			cancel()
			<-ended
		})
	}
}

// checkFault sends a message to a role that breaks a rule. The signal and the cycle must appear in the error of the
// exchange, the state of the simulation, the failures of its rank, and the log.
func checkFault(t *testing.T, c *cluster, words int, signal, text string) {
	t.Helper()
	failed := c.fails(t, words)
	ctx := within(t, time.Minute)
	s, err := c.Client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sides := map[string]string{"the exchange": failed, "the role": s.Ranks[1].KernelBlockReason, "the log": c.said()}
	for _, f := range s.Failures {
		if f.Rank == 1 {
			sides["the failures"] += f.Reason
		}
	}
	for side, said := range sides {
		name, _, _ := strings.Cut(signal, " ")
		if !strings.Contains(said, name) || !strings.Contains(said, text) {
			t.Errorf("%s: %q, want %s and %s", side, said, name, text)
		}
	}
	if len(sides) != 4 || !strings.Contains(failed, signal) {
		t.Errorf("it failed with %q, want %s; %d sides know it", failed, signal, len(sides))
	}
	// A line takes at least one cycle, and the reset takes 16.
	m := regexp.MustCompile(`at cycle (\d+)`).FindStringSubmatch(failed)
	if m == nil {
		t.Fatalf("%s names no cycle", failed)
	}
	if cycle, _ := strconv.Atoi(m[1]); cycle < 16+words/2 {
		t.Errorf("%s: cycle %d", failed, cycle)
	}
}

// TestBrokenExchanges checks that a broken rule makes the exchange fail on both sides.
func TestBrokenExchanges(t *testing.T) {
	hls := brokenRole(t, "hls")[0]
	for name, tt := range map[string]struct {
		simulator string
		words     int
		signal    string
		text      string
	}{
		"data changes": {hls, 4, "soMPI_data_tdata at cycle",
			"changed before tready, in bits 0x0000000000000001, on line 1 of 2 of SEND_INT of 4 words to rank 0"},
		"undefined": {brokenRole(t, "vhdl")[0], 20, "soMPI_data_tdata at cycle",
			"neither 0 nor 1 while tvalid is 1, in bits 0x0000000000000020"},
	} {
		t.Run(name, func(t *testing.T) {
			checkFault(t, start(t, tt.simulator, "seed=1", ""), tt.words, tt.signal,
				tt.text)
		})
	}
	t.Run("ends", func(t *testing.T) {
		c := start(t, hls, "", "")
		failed := c.fails(t, 18)
		for _, want := range []string{"the kernel of rank 1 failed", "the simulator ended after cycle",
			"exit status 3"} {
			if !strings.Contains(failed, want) {
				t.Errorf("the exchange ends with %q, want %q", failed, want)
			}
		}
		c.ping(t, 22, 1, "int") // the simulator was restarted
	})
	t.Run("count too small", func(t *testing.T) {
		c := start(t, hls, "", "")
		c.ping(t, 20, 1, "int")
		if failed := c.fails(t, 5); !strings.Contains(failed, "soMPIif has a count of 4 words at cycle") {
			t.Errorf("the exchange ends with %q", failed)
		}
	})
	t.Run("longer than the role takes", func(t *testing.T) {
		c := start(t, hls, "", "")
		if failed := c.fails(t, 8193); !strings.Contains(failed,
			"the kernel of rank 1 takes 8192 at most (kernel_options.words)") {
			t.Errorf("the exchange ends with %q", failed)
		}
		c.ping(t, 22, 1, "int")
	})
	t.Run("valid waits", func(t *testing.T) {
		c := start(t, hls, "", "")
		c.ping(t, 10, 3, "int")
		if said := c.said(); !strings.Contains(said, "valid of the role follows ready") ||
			!strings.Contains(said, "soMPI_data_tvalid") {
			t.Errorf("logged:\n%s", said)
		}
	})
}

// TestPace checks that a paced simulation exchanges messages and does not exceed its pace.
func TestPace(t *testing.T) {
	const rate = 200_000
	began := time.Now()
	c := start(t, build(t, "vhdl"), "cycles_per_second=200000", "")
	c.ping(t, 1000, 5, "int")
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	most := uint64(time.Since(began).Seconds()*rate) + 1
	sim := s.Ranks[1].KernelStats.Simulation
	if sim == nil || sim.Cycle < 5*1000 || sim.Cycle > most {
		t.Errorf("%+v, want at most %d cycles", sim, most)
	}
}
