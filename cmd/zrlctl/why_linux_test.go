package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// serveRank serves the state of one of two ranks. The rank has waited for the other one for the given number of
// seconds. If asked is nil, it does not query other ranks.
func serveRank(t *testing.T, job string, rank int, seconds float64, asked ...state.AskResult) {
	t.Helper()
	cluster := []state.Member{{Address: "10.0.0.1:2718", Kind: "software"},
		{Rank: 1, Address: "10.0.0.2:2718", Kind: "software"}}
	peer := state.Peer{Rank: 1 - rank, Address: cluster[1-rank].Address, Kind: "software", Profile: "extended",
		Transport: "udp", SinceLastPacket: new(1.0), Extended: &state.Extended{PeerSession: 5}}
	if seconds > 0 {
		peer.Receiving = &state.Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: seconds,
			Envelope: state.Envelope{Bytes: 4, Tag: new(7)}}
	}
	report := &node.Report{
		Started: time.Now(), Cluster: cluster,
		RankInfo: state.RankInfo{Rank: rank, Role: "host", Address: cluster[rank].Address,
			Transports: []state.Transport{state.TransportUDP}},
		Engine: state.Engine{Rank: rank, Peers: []state.Peer{peer}},
	}
	directory, warning, err := jobs.Make(job)
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	c, err := jobs.Serve(directory, rank, func(_ context.Context, r query.Request) query.Response {
		switch {
		case r.Kind == query.Status:
			return query.Response{Document: report}
		case asked != nil:
			return query.Response{Document: state.Reports{Results: asked}}
		}
		return query.Unknown(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
}

// TestWhy: the command prints the causes, from this host alone and together with other hosts. The exit code reports
// whether there are any.
func TestWhy(t *testing.T) {
	name := func(of string) string { return fmt.Sprintf("why_test_%s_%d", of, os.Getpid()) }
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	serveRank(t, name("here"), 0, 9)
	serveRank(t, name("there"), 1, 8)
	peer := state.Peer{Rank: 0, Address: "10.0.0.1:2718", Kind: "software", Profile: "extended", Transport: "udp",
		SinceLastPacket: new(1.0), Extended: &state.Extended{PeerSession: 1},
		Receiving: &state.Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: 8,
			Envelope: state.Envelope{Bytes: 4, Tag: new(7)}}}
	serveRank(t, name("asks"), 0, 9, state.AskResult{Rank: 1, Report: state.PublicOf(&state.Rank{
		RankInfo: state.RankInfo{Rank: 1, Address: "10.0.0.2:2718", Role: "host", Attached: []state.Program{{PID: 17}}},
		Engine:   state.Engine{Rank: 1, Peers: []state.Peer{peer}}})})
	serveRank(t, name("older"), 0, 9, state.AskResult{Rank: 1, Reason: mpe.ErrNoQuestions.Error()})
	serveRank(t, name("quiet"), 0, 0, state.AskResult{Rank: 1, Reason: mpe.ErrNoReport.Error()})
	serveRank(t, name("idle"), 0, 0)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /jobs/{job}/status.json", serveJobStatus)
	mux.HandleFunc("GET /html/status.json", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	other := httptest.NewServer(mux)
	defer other.Close()
	there, none := other.URL+"/jobs/"+name("there"), filepath.Join(t.TempDir(), "none.sock")
	t.Setenv(config.EnvControlSocket, "")
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--job", name("here")}, exitWaits,
			"Rank 0 has waited 9.0 s to receive up to 4 bytes with tag 7 from rank 1, no message was received that " +
				"matches: what rank 1 waits for is not known here", ""},
		{[]string{"--job", name("here")}, exitWaits, "state not known: rank 1 at 10.0.0.2:2718: it was not asked: " +
			"rank 0 of job " + name("here") +
			" has asked no others: no such request: \"reports\": run zrlctl why on its host\n", ""},
		{[]string{"--job", name("asks")}, exitWaits, "cycle 0 → 1 → 0, closed for 8.0 s", ""},
		{[]string{"--job", name("older")}, exitWaits, "what rank 1 waits for is not known here: it runs an older " +
			"version of zrlmpid, which answers no questions", ""},
		{[]string{"--job", name("older")}, exitWaits, "state not known: rank 1 at 10.0.0.2:2718: it runs an older " +
			"version of zrlmpid, which answers no questions for reports: run zrlctl why on its host\n", ""},
		{[]string{"--job", name("quiet")}, exitOK, "state not known: rank 1 at 10.0.0.2:2718: it has not answered " +
			"the question for a report: run zrlctl why on its host\n", ""},
		{[]string{"--job", name("here"), "--daemons", there}, exitWaits, "cycle 0 → 1 → 0, closed for 8.0 s", ""},
		{[]string{"1", "--job", name("here"), "--daemons", there}, exitWaits, "cycle 0 → 1 → 0", ""},
		{[]string{"--job", name("here"), "--after", "1m"}, exitOK, "no rank has waited for longer than 1 min 00 s\n",
			""},
		{[]string{"--job", name("idle")}, exitOK, "no rank has waited for longer than 1.0 s\n", ""},
		{[]string{"--job", name("idle"), "--daemons", none}, exitUnreachable,
			"no answer: daemon " + none + ": no zrlmpid answers on ", ""},
		{[]string{"--job", name("idle"), "--daemons", other.URL}, exitUnreachable, "/status.json: 404 Not Found", ""},
		{[]string{"--job", name("idle"), "--daemons", other.URL + "/html"}, exitUnreachable,
			"not the status of a zrlmpid", ""},
		{[]string{"--job", name("idle"), "--daemons", other.URL + "/jobs/x"}, exitUnreachable, "404 Not Found", ""},
		{[]string{"--job", name("idle"), "--daemons", other.URL + "/jobs/x@7"}, exitUnreachable, "404 Not Found", ""},
		{[]string{"--job", name("idle"), "--daemons", "http://user:secret@127.0.0.1:1"}, exitUnreachable,
			"no answer: daemon http://user:xxxxx@127.0.0.1:1: dial tcp", ""},
		{[]string{"--daemons", there, "--socket", none}, exitUnreachable, "", "no zrlmpid answers on " + none},
		{[]string{"2", "--job", name("here")}, exitUsage, "", "there is no rank 2: the cluster has ranks 0 to 1"},
		{[]string{"x"}, exitUsage, "", `rank "x": give a rank number, 0 or higher`},
		{[]string{"--after", "-1s"}, exitUsage, "", "--after -1s: must be at least 0"},
	} {
		code, stdout, stderr := zrlctl(t, "", append([]string{"why"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%q: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	code, stdout, _ := zrlctl(t, "", "why", "--json", "--job", name("here"))
	var d diagnosis.Diagnosis
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || code != exitWaits || len(d.Findings) != 1 ||
		d.Findings[0].Cause != diagnosis.StateUnknown || d.Findings[0].Missing != protocol.SendRequest {
		t.Errorf("%v, exit code %d\n%s", err, code, stdout)
	}
}

// TestAsks: the rank that queries the others of a job is one that has answered, because other ranks may be stuck.
func TestAsks(t *testing.T) {
	answered := []state.Rank{{RankInfo: state.RankInfo{Rank: 3}}}
	for _, tt := range []struct {
		s    state.Status
		want int
	}{
		{state.Status{Job: "a job", Ranks: answered}, 3}, {state.Status{Job: "a job"}, query.AnyRank},
		{state.Status{Ranks: answered}, query.AnyRank},
	} {
		if got := askingRank(&tt.s); got != tt.want {
			t.Errorf("rank %d, want %d", got, tt.want)
		}
	}
}
