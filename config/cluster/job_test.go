package cluster

import (
	"strings"
	"testing"
)

// TestJob checks that all CPU ranks run programs, and that the ranks of a job on one host have loopback addresses.
func TestJob(t *testing.T) {
	pool := mustPool(t, "10.0.0.1-10.0.0.9")
	for _, tt := range []struct {
		name, file string
		options    JobOptions
		want       string
	}{
		{"FPGAs", clusterFile, JobOptions{Addresses: pool},
			"0 host 10.0.0.1:2718 software\n1 10.0.0.2:2718 fpga\n2 10.0.0.3:2718 fpga\n3 10.0.0.4:2718 fpga\n"},
		{"stand-ins", clusterFile, JobOptions{Kernel: "ring"},
			"0 host 127.0.0.1:2718 software\n1 standin 127.0.0.2:2718 fpga ring\n2 standin 127.0.0.3:2718 fpga " +
				"ring\n3 standin 127.0.0.4:2718 fpga ring\n"},
		{"stand-ins elsewhere", bothFile, JobOptions{Addresses: pool, FPGA: []int{1}, Kernel: "echo"},
			"0 host 10.0.0.1:2718 software\n1 standin 10.0.0.2:2718 fpga echo\n"},
		{"CPUs", bothFile, JobOptions{}, "0 host 127.0.0.1:2718 software\n1 host 127.0.0.2:2718 software\n"},
		{"manager's answer", answer, JobOptions{},
			"0 host 10.12.0.1:2718 software\n1 10.12.200.7:2718 fpga\n2 10.12.200.4:2718 fpga\n"},
		{"manager's answer with stand-ins", answer, JobOptions{Kernel: "echo"},
			"0 host 127.0.0.1:2718 software\n1 standin 127.0.0.2:2718 fpga echo\n2 standin 127.0.0.3:2718 fpga echo\n"},
	} {
		cfg, err := mustParse(t, tt.file).JobConfig(tt.options)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := summary(cfg); got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		file    string
		options JobOptions
		want    string
	}{
		{clusterFile, JobOptions{}, "a cluster file has no addresses"},
		{clusterFile, JobOptions{Kernel: "jazz"}, "unknown kernel"},
		{clusterFile, JobOptions{Addresses: pool, FPGA: []int{0}}, "all 4 ranks are FPGAs"},
		{answer, JobOptions{Addresses: pool}, "already has addresses"},
	} {
		if _, err := mustParse(t, tt.file).JobConfig(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.options, err, tt.want)
		}
	}
}
