package metrics

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestJobs checks that each scrape contains the ranks of those jobs that exist at that time.
func TestJobs(t *testing.T) {
	var list []Job
	registry := NewJobRegistry(func() []Job { return list })
	text := func() string {
		families, err := checked(registry, false)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if got := text(); got != "" {
		t.Errorf("without jobs: %s", got)
	}
	peer := state.PeerCounters{Rank: 1, MessageCounts: state.MessageCounts{Sent: 7}, SentBytes: 28}
	recorder := phases.NewRecorder(0, []phases.Peer{{}, {Profile: "cloudfpga", Kind: "fpga"}}, 2)
	recorder.RecordMessage(sent(1, time.Millisecond), nil)
	text0, err := json.Marshal(phases.Times{Classes: recorder.Classes(),
		Peers: map[int]phases.PeerTimes{1: recorder.Peer(1), 7: {}}})
	var times phases.Times
	if err == nil {
		err = json.Unmarshal(text0, &times) // in the form received from the rank's process
	}
	if err != nil {
		t.Fatal(err)
	}
	ranks := []JobRank{
		{Started: time.Now(), State: state.RankInfo{Rank: 0, Attached: make([]state.Program, 1)}, ClusterSize: 2,
			Peers: []state.PeerCounters{peer}, Times: times},
		{Started: time.Now(), State: state.RankInfo{Rank: 1, Kernel: "echo", KernelState: state.KernelRunning},
			ClusterSize: 2},
	}
	list = []Job{{"a", ranks}, {"b", ranks}}
	got := text()
	for _, want := range []string{
		`zrlmpi_messages_total{direction="send",mpi_job="a",peer="1",rank="0"} 7`,
		`zrlmpi_message_bytes_total{direction="send",mpi_job="b",peer="1",rank="0"} 28`,
		`zrlmpi_kernel_up{kernel="echo",mpi_job="a",rank="1"} 1`, `zrlmpi_attached_programs{mpi_job="b",rank="0"} 1`,
		`zrlmpi_handshake_phase_seconds_bucket{direction="send",kind="fpga",mpi_job="a",phase="total",profile="cloudfpga",rank="0",le="0.0625"} 1`,
		`zrlmpi_handshake_phase_seconds_sum{direction="send",kind="fpga",mpi_job="b",phase="data",profile="cloudfpga",rank="0"} 0.003`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	list = list[:1]
	if got := text(); strings.Contains(got, `"b"`) {
		t.Errorf("a job that no longer exists: %s", got)
	}
}
