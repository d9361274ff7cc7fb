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

// The cause of a wait for a role with a bug names the signal and the cycle, and so does the log.
func TestFaultyRoles(t *testing.T) {
	onLast := func(to string) change {
		return change{"              if line = last_line then\n                out_last <= '1';", "              if line = last_line then\n                " + to}
	}
	tests := map[string]struct {
		changes []change
		words   int
		signal  string
		text    string // of the cause
		logged  string // the message of the finding
	}{
		"drops last": {
			[]change{onLast("out_last <= '0';")}, 1000, "soMPI_data_tlast at cycle", "not set on line 500 of 500 of SEND_INT of 1000 words to rank 0", "role breaks the rules of its interface",
		},
		"last too early": {
			[]change{{"if line = last_line then\n                out_last <= '1';", "if line = last_line - 1 then\n                out_last <= '1';"}}, 1000,
			"soMPI_data_tlast at cycle", "set 2 words too early, on line 499 of 500", "role breaks the rules of its interface",
		},
		"one word short": {
			[]change{onLast("out_last <= '1';\n                soMPI_data_tkeep <= x\"0f\";")}, 1000, "soMPI_data_tkeep at cycle", "0x0f, and not 0xff, on line 500 of 500", "role breaks the rules of its interface",
		},
		"never ready": {
			[]change{
				{"siMPI_data_tready <= '1' when state = receive else '0';", "siMPI_data_tready <= '0';"},
				{"if siMPI_data_tvalid = '1' then", "if siMPI_data_tvalid = '1' and siMPI_data_tready = '1' then"},
			}, 9,
			"siMPI_data_tready since cycle", "low, with line 1 of 5 of RECV_INT of 8192 words from rank 0", "role holds up a message",
		},
		"takes no feedback": {
			[]change{
				{"siMPIFeB_tready   <= '1' when state = recv_end or state = send_end else '0';", "siMPIFeB_tready <= '0';"},
				{"if siMPIFeB_tvalid = '1' then\n              state <= call_send;", "if siMPIFeB_tvalid = '1' and siMPIFeB_tready = '1' then\n              state <= call_send;"},
			}, 9,
			"siMPIFeB_tready since cycle", "low, with the feedback of RECV_INT", "role holds up a message",
		},
		"makes no call": {
			[]change{{"              call_valid <= '1';", "              call_valid <= '0';"}}, 9, "soMPIif_tvalid since cycle", "the role makes no call", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := start(t, build(t, "vhdl", tt.changes...), "seed=1", "")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = c.Client.Ping(ctx, control.PingRequest{From: 0, To: 1, Words: tt.words, Count: 1, Datatype: "int", Timeout: "0s"}, func(control.Trip) error { return nil })
			}()
			var found diagnosis.Finding
			until(t, "the cause", func() bool {
				s, err := c.Client.Status(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range diagnosis.Of([]diagnosis.Source{{Status: &s}}, 200*time.Millisecond).Findings {
					if f.Cause == diagnosis.RoleHolds && strings.Contains(f.Text, tt.text) {
						found = f
					}
				}
				return found.Text != ""
			})
			if !strings.Contains(found.Text, tt.signal) {
				t.Errorf("%s does not name the signal: want %s", found.Text, tt.signal)
			}
			// The role is out of reset from cycle 16 on, and each line takes a cycle. Before its
			// first transfer, a role holds its signals since the beginning.
			m := regexp.MustCompile(`(at|since) cycle (\d+)`).FindStringSubmatch(found.Text)
			if m == nil {
				t.Fatalf("%s names no cycle", found.Text)
			}
			if cycle, _ := strconv.Atoi(m[2]); cycle < 16 != (name == "makes no call") || strings.HasPrefix(m[1], "at") && cycle < tt.words/2 {
				t.Errorf("%s: cycle %d", found.Text, cycle)
			}
			if tt.logged != "" {
				until(t, "the finding", func() bool { return strings.Contains(c.said(), tt.logged) })
				if said := c.said(); !strings.Contains(said, strings.Fields(tt.signal)[0]) || !strings.Contains(said, tt.text) {
					t.Errorf("logged:\n%s", said)
				}
			}
			cancel()
			<-ended
		})
	}
}

// A paced simulation takes no more cycles than its pace, and exchanges messages.
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
