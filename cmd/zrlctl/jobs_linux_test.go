package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
)

// TestJobs: commands can show a job instead of a daemon.
func TestJobs(t *testing.T) {
	name := fmt.Sprintf("zrlctl_test_%d", os.Getpid())
	cluster := []state.Member{{Address: "10.0.0.1:2718", Kind: "software"},
		{Rank: 1, Address: "10.0.0.2:2718", Kind: "fpga", Profile: "cloudfpga", Transport: "udp"}}
	report := &node.Report{
		Started: time.Now(), Cluster: cluster,
		RankInfo: state.RankInfo{Role: state.RoleHost, Address: cluster[0].Address,
			Transports: []state.Transport{state.TransportUDP}},
		Engine: state.Engine{Peers: []state.Peer{{Rank: 1, MessageCounts: state.MessageCounts{Sent: 5}}}},
		Peers:  []state.PeerCounters{{Rank: 1, MessageCounts: state.MessageCounts{Sent: 5}}},
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory, warning, err := jobs.Make(name)
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	for rank, answer := range []query.Response{{Document: report}, {Err: errors.New("nothing")}} {
		c, err := jobs.Serve(directory, rank, func(_ context.Context, r query.Request) query.Response {
			switch r.Kind {
			case query.Packets:
				return query.Response{Err: errors.New("no packets")}
			case query.Reset:
				return query.Response{}
			}
			return answer
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	none := filepath.Join(t.TempDir(), "none.sock")
	for _, tt := range []struct {
		args   []string
		code   int
		want   []string
		stderr string
	}{
		{args: []string{"status", "--job", name}, want: []string{"job " + name + ", uptime ",
			"2 ranks (local: 1 host, 0 stand-ins)", fmt.Sprintf("process %d has used rank 0", os.Getpid()),
			"warning: the processes of these ranks do not answer: 1\n"}},
		{args: []string{"status", "--json", "--job", name}, want: []string{`"job": "` + name + `"`}},
		{args: []string{"top", "--count", "1", "--job", name}, want: []string{"job " + name + ", uptime "}},
		{args: []string{"ranks", "--job", name}, want: []string{"host    software  10.0.0.1:2718  -          -  " +
			"        5", "remote  fpga      10.0.0.2:2718  cloudfpga  udp "}},
		{args: []string{"metrics"},
			want: []string{`zrlmpi_messages_total{direction="send",mpi_job="` + name + `",peer="1",rank="0"} 5`}},
		{args: []string{"capture", "-o", none, "--job", name}, code: exitFailure,
			stderr: "the ranks of job " + name + " on this host record no packets"},
		{args: []string{"trace", "-o", none, "--job", name}, code: exitFailure,
			stderr: "the ranks of job " + name + " on this host record no packets"},
		{args: []string{"reset", "1", "--job", name}, want: []string{"rank 1 is reset for each rank of job " + name +
			" on this host\n"}},
		{args: []string{"reset", "1", "--from", "0", "--job", name}, want: []string{"rank 1 is reset for rank 0 of job " +
			name + "\n"}},
		{args: []string{"trace", "-o", none, "--job", "no-such-job"}, code: exitUsage,
			stderr: `there is no job "no-such-job" on this host: there are `},
		{args: []string{"status", "--job", "no-such-job"}, code: exitUsage,
			stderr: `there is no job "no-such-job" on this host: there are `},
		{args: []string{"status", "--socket", none}, code: exitUnreachable, stderr: "no zrlmpid answers on " + none},
		{args: []string{"metrics", "--http", "256.0.0.1:1"}, code: exitFailure, stderr: "256.0.0.1"},
	} {
		code, stdout, stderr := zrlctl(t, "", tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%q: exit code %d, %s", tt.args, code, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: there is no %q in\n%s", tt.args, want, stdout)
			}
		}
	}
}

// TestNoTarget checks that the error without a daemon and jobs names both, where they were searched for, and how to
// start them.
func TestNoTarget(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	_, err := chooseOnlyJob(nil, &control.UnreachableError{Socket: "/run/none.sock", Err: errors.New("absent")}, nil)
	if exitCode(&operationError{err}) != exitUnreachable {
		t.Errorf("exit code %d", exitCode(&operationError{err}))
	}
	for _, want := range []string{"no zrlmpid answers on /run/none.sock (absent), and no job of this user runs on this " +
		"host (none in /run/user/7/zrlmpi/jobs, ", `"zrlmpid --config FILE"`, `"zrlctl run"`, "--socket"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("there is no %q in %v", want, err)
		}
	}
}
