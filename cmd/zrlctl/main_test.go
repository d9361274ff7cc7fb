package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

const testTimeout = 20 * time.Second

// TestMain lets the test binary act as zrlctl top, on a separate terminal, and as zrlctl run, whose process another
// program replaces.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "top" || os.Args[1] == "run") {
		main()
	}
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		job.Main(1, func(ctx context.Context,
			world *mpi.Comm) error {
			return greetFPGAs(ctx, world, len(os.Args) == 2)
		})
	}
	if len(os.Args) > 1 && os.Args[1] == "flood" {
		job.Main(1, flood)
	}
	// By default, a program built with the race detector sleeps for a second when it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(statetest.Run(m))
}

// greetFPGAs is the program that ranks run. Rank 0 sends a word to each other rank and receives it back. The other
// ranks do the same with all ranks if all is true, and only with rank 0 otherwise.
func greetFPGAs(ctx context.Context, world *mpi.Comm, all bool) error {
	for peer := range world.Size() {
		if peer == world.Rank() || world.Rank() > 0 && peer > 0 && !all {
			continue
		}
		word, back := []int32{int32(peer)}, []int32{-1}
		if _, err := mpi.Sendrecv(ctx, world, word, peer, 0, back, peer, 0); err != nil {
			return err
		}
		fmt.Printf("rank %d has %d of rank %d\n", world.Rank(), back[0], peer)
	}
	return nil
}

// startDaemon runs a daemon with a host rank, two echo stand-ins, a sink and a remote rank that does not exist. It
// returns the path of the daemon's control socket.
func startDaemon(t *testing.T) string {
	t.Helper()
	network := loopback.Network(t)
	var ranks []string
	for i, r := range []string{"run: host", "run: standin", "run: standin", "run: standin, kernel: sink", "peer: cpu"} {
		ranks = append(ranks, fmt.Sprintf("address: %s%d, %s", network, i+1, r))
	}
	return daemontest.Start(t, daemon.Options{}, "", ranks...).Socket
}

// zrlctl runs a command and waits for it to end.
func zrlctl(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommands(t *testing.T) {
	socket := startDaemon(t)
	file := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(file, []byte("abcdefgh"), 0o600); err != nil {
		t.Fatal(err)
	}
	number := `\s+(?:\d+\.\d|-)`
	row := func(rank, words, verified string) string {
		return `(?m)^ +` + rank + ` +` + words + strings.Repeat(number, 2) + ` \|` + strings.Repeat(number, 3) + ` \|` +
			strings.Repeat(number, 3) + ` +` + verified + `$`
	}
	for _, tt := range []struct {
		args   string
		stdin  string
		code   int
		stdout string // regular expressions
		stderr string
	}{
		{args: "status", stdout: `(?s)^WAITING RANKS\n  no rank is waiting\nPROBLEMS\n.*\nzrlmpid .*configuration test.yaml, 5 ranks \(local: 1 host, 3 stand-ins\)\n\n` +
			`RANK  TRANSPORTS  OFFLOAD +RECEIVE BUFFER +SHM RING +SINGLE COPY +OVERSUBSCRIBED\n0 +udp +[a-z]\S.* [\d.]+\S+ +- +- +(yes|no)\n1 .*\n2 .*\n3 [^\n]*\n$`},
		{args: "status --wait 5s --json",
			stdout: `(?s)"config": "test.yaml".*"offload": {\s*"batches": .*"shm_ring": 0,\s*"shm_links": 0,\s*"shm_single_copy": 0,\s*"oversubscribed": `},
		{args: "ranks", stdout: `(?m)^1 +standin echo +fpga +127\.[\d.:]+ +cloudfpga +udp +0 +0 +0$`},
		{args: "ranks --json", stdout: `"kernel": "sink"`},

		{args: "ping 1 --words 1,2,3,346,347,1000 --count 3", stdout: row("1", "1000", "3/3")},
		{args: "ping 1,2 --datatype float", stdout: row("2", "1", "1/1")},
		{args: "ping 2 1 2 --parallel --words 100", stdout: `(?s)VERIFIED\n([^\n]*1/1\n){2}$`},
		{args: "ping 2 --json --count 2 --seed 9",
			stdout: `(?s)"seed":9.*"verified":true.*\n.*"seed":10.*"verified":true`},
		{args: "ping 3 --timeout 50ms", code: exitTimeout, stdout: `-  0/1\n$`,
			stderr: `rank 3, 1 word: rank 0 has waited \S+ for SEND_REQUEST from rank 3`},
		{args: "ping all --timeout 50ms", code: exitTimeout, stdout: row("2", "1", "1/1"),
			stderr: `(?s)rank 3, .*rank 4, .*CLEAR_TO_SEND from rank 4`},
		{args: "ping 3,9 --timeout 50ms", code: exitFailure,
			stderr: `rank 9: no such rank: the cluster has ranks 0 to 4`},
		{args: "ping 1 --from 2", code: exitFailure, stderr: `rank 2 is a stand-in`},
		{args: "ping x", code: exitUsage, stderr: `rank "x": not a number`},
		{args: "ping 1 --words -1", code: exitUsage, stderr: `-1 words`},
		{args: "ping 1 --words a", code: exitUsage, stderr: `--words`},
		{args: "ping 1 --count 0", code: exitUsage, stderr: `--count 0`},
		{args: "ping 1 --datatype double", code: exitUsage, stderr: `unknown datatype "double"`},
		{args: "ping", code: exitUsage, stderr: `(?m)^zrlctl: ping: RANK is missing\nusage: zrlctl ping RANK`},

		{args: "send 1 --data 010000000200ff00", stdout: `^sent 2 words from rank 0 to rank 1 in [\d.]+ µs\n$`},
		{args: "recv 1", stdout: `^01000000 0200ff00\n$`},
		{args: "send 1 --words 3", stdout: `sent 3 words`},
		{args: "recv 1 --format int", stdout: `^0\n1\n2\n$`},
		{args: "send 1 --words 3 --datatype float", stdout: `sent 3 words`},
		{args: "recv 1 --format float --datatype float", stdout: `^0\n1\n2\n$`},
		{args: "send 1 --file " + file, stdout: `sent 2 words`},
		{args: "recv 1 --format raw", stdout: `^abcdefgh$`},
		{args: "send 1 --file -", stdin: "12345678", stdout: `sent 2 words`},
		{args: "recv 1 --words 1 --format raw", code: exitFailure, stdout: `^1234$`,
			stderr: `sent 2 words, but the posted buffer holds 1`},
		{args: "send 1 --words 262160", stdout: `sent 262160 words`},
		{args: "recv 1 --format int -o " + file},
		{args: "send 1 --file -", stdin: "123", code: exitUsage, stderr: `3 bytes: the length is not a multiple of 4`},
		{args: "send 1 --data 0102", code: exitUsage,
			stderr: `--data: 4 hex digits: a message consists of whole words of 8 digits each`},
		{args: "send 1 --data abc", code: exitUsage, stderr: `--data: 3 hex digits: a message consists of whole words`},
		{args: "send 1 --data 0z", code: exitUsage, stderr: `--data: 'z', byte 2, is not a hex digit`},
		{args: "send 1 --file /no/such/file", code: exitUsage, stderr: `/no/such/file`},
		{args: "send 1 --words 0", code: exitFailure, stderr: `a message of 0 words wedges an FPGA`},
		{args: "send 1 --words -1", code: exitUsage, stderr: `--words -1: must be at least 1`},
		{args: "send 1", code: exitUsage,
			stderr: `(?m)^zrlctl: send: give one of --data, --file, --words\nusage: zrlctl send RANK`},
		{args: "send 1 --words 1 --data 00000000", code: exitUsage, stderr: `send: give only one of --data, --words`},
		{args: "send 4 --words 1 --timeout 30ms", code: exitTimeout,
			stderr: `rank 0 has waited \S+ for CLEAR_TO_SEND from rank 4.*: timed out after 30 ms`},
		{args: "recv 1 --timeout 30ms", code: exitTimeout,
			stderr: `rank 0 has waited \S+ for SEND_REQUEST from rank 1.*: timed out after 30 ms`},
		{args: "recv 1 --format octal", code: exitUsage, stderr: `--format "octal"`},
		{args: "recv 1 --datatype double", code: exitUsage, stderr: `--datatype: .*or any`},
		{args: "recv 1 --words 67108865", code: exitFailure, stderr: `67108865 words: must be at most 67108864`},

		{args: "send 1 --data 010000000200ff00 --json", stdout: `(?s)"words": 2,.*"phases"`},
		{args: "recv 1 --json", stdout: `(?s)"words": 2,.*"data": "010000000200ff00"`},
		{args: "send 1 --words 2 --json", stdout: `"words": 2`},
		{args: "recv 1 --json --format int", stdout: `(?s)"data": \[\s+0,\s+1\s+\]`},
		{args: "send 1 --words 2 --datatype float --json", stdout: `"datatype": "float"`},
		{args: "recv 1 --json --format float", stdout: `(?s)"data": \[\s+"0",\s+"1"\s+\]`},
		{args: "send 1 --words 2 --json", stdout: `"words": 2`},
		{args: "recv 1 --json --format raw -o " + file + ".2", stdout: `(?s)"words": 2,.*"file": `},
		{args: "recv 1 --timeout 30ms --json", code: exitTimeout,
			stdout: `^\{"error":".*timed out after 30 ms","kind":"timeout","exit":4\}\n$`,
			stderr: `timed out after 30 ms`},

		{args: "reset 1", stdout: `^rank 1 is reset for the lowest host rank of the daemon\n$`},
		{args: "reset 1 --from 0", stdout: `^rank 1 is reset for rank 0 of the daemon\n$`},
		{args: "reset 1 --json", stdout: `"reset": 1`},
		{args: "version --json", stdout: `"version": `},
		{args: "reset 9", code: exitFailure, stderr: `no such peer`},
		{args: "version", stdout: `^zrlctl ` + regexp.QuoteMeta(version.String())},
		{args: "", stdout: `(?s)Exit codes:\n  0    success`},
		{args: "completion bash", stdout: `bash completion`},
		{args: "--version", stdout: `^zrlctl ` + regexp.QuoteMeta(version.String())},
		{args: "pign 1", code: exitUsage,
			stderr: `there is no command "pign" \(did you mean "ping"\?\)\nusage: zrlctl `},
		{args: "status --bogus", code: exitUsage, stderr: `status: there is no flag --bogus\nusage: zrlctl status`},
		{args: "status --jsn", code: exitUsage, stderr: `no flag --jsn \(did you mean "--json"\?\)`},
		{args: "status 1", code: exitUsage, stderr: `status: unexpected argument "1"`},
		{args: "send 1 --words", code: exitUsage, stderr: `send: --words needs a value`},
		{args: "send 1 --words x", code: exitUsage, stderr: `--words "x": must be a whole number`},
		{args: "recv 1 --timeout 3", code: exitUsage, stderr: `--timeout "3": must be a time with its unit`},
		{args: "decode x.pcap --socket " + socket, code: exitUsage, stderr: `decode: there is no flag --socket`},
		{args: "help send", stdout: `(?s)Flags:.*--socket`},
		{args: "help decode", stdout: `--port ports +ports that carry ZRLMPI \(default 2718 to 2845\)\n`},
		{args: "help analyze", stdout: `--port ports +ports that carry ZRLMPI \(default 2718 to 2845\)\n`},
	} {
		code, stdout, stderr := zrlctl(t, tt.stdin, append([]string{"--socket", socket}, strings.Fields(tt.args)...)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("zrlctl %s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
		if (tt.code == exitOK) != (stderr == "") {
			t.Errorf("zrlctl %s: on standard error: %q", tt.args, stderr)
		}
	}
	if text, err := os.ReadFile(file); err != nil || bytes.Count(text, []byte("\n")) != 262160 ||
		!bytes.HasSuffix(text, []byte("\n262159\n")) {
		t.Errorf("recv -o wrote %d bytes, %v", len(text), err)
	}
	_, stdout, _ := zrlctl(t, "", "--socket", socket, "ranks", "--json")
	var rows []rankRow
	if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 5 || rows[1].Sent == 0 ||
		rows[4].Failed == 0 {
		t.Errorf("%v\n%s", err, stdout)
	}
}

func TestUnreachable(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	t.Setenv(config.EnvControlSocket, socket)
	for _, args := range [][]string{
		{"status"}, {"status", "--wait", "50ms"}, {"ranks"}, {"ping", "1"}, {"ping", "all"},
		{"send", "1", "--words", "1"}, {"recv", "1"}, {"reset", "1"},
	} {
		code, stdout, stderr := zrlctl(t, "", args...)
		if code != exitUnreachable || stdout != "" || !strings.Contains(stderr, "no zrlmpid answers on "+socket) ||
			!strings.Contains(stderr, `start it with "zrlmpid --config FILE"`) {
			t.Errorf("%v: %d %q %q", args, code, stdout, stderr)
		}
	}
}

// TestStatusText checks the text of a status that has all kinds of problems.
func TestStatusText(t *testing.T) {
	var s state.Status
	if err := json.Unmarshal([]byte(`{
	  "version": "v1", "pid": 7, "config": "f.yaml", "uptime_seconds": 61.2, "lost_log_lines": 3,
	  "cluster": [{"rank": 0}, {"rank": 1}],
	  "ranks": [
	    {"rank": 0, "role": "host", "transports": ["udp", "shm"], "receive_buffer": 212992, "receive_buffer_requested": 16777216,
	     "offload": {"batches": true, "segmentation": true, "coalescing": true, "refused": [{"peer": 1, "error": "input/output error"}]},
	     "shm_ring": 1048576, "shm_links": 3, "shm_single_copy": 2, "oversubscribed": true, "engine": {"dropped": {"unknown_address": 4}, "peers": [{"rank": 1, "address": "10.0.0.2:2718",
	      "sending": {"state": "WAIT_CLEAR", "age_seconds": 3, "text": "rank 0 waits for CLEAR_TO_SEND from rank 1", "retransmissions": 2}, "queued_sends": 5,
	      "deferred": {"call": "SEND_FLOAT", "age_seconds": 4.5}, "unanswered_clear": {"call": "RECV_INT", "age_seconds": 6}, "unexpected": 1,
	      "refuses": "never acknowledged", "network_error": "no route to host", "dropped": {"stale": 2, "unknown_address": 1}}]}},
	    {"rank": 1, "address": "10.0.0.2:2718", "role": "standin", "kernel": "echo", "kernel_state": "failed", "kernel_error": "no such peer",
	     "transports": ["udp"], "receive_buffer": 65536, "receive_buffer_requested": 65536, "offload": {"batches": true, "disabled": true},
	     "engine": {"peers": [{"rank": 0, "receiving": {"state": "WAIT_REQUEST", "text": "idle"}}]}}]}`), &s); err != nil {
		t.Fatal(err)
	}
	const want = `WAITING RANKS
    AGE  RANK     PEER  WHAT
  3.0 s     0  →  1     rank 0 waits for CLEAR_TO_SEND from rank 1 (2 retransmissions, 5 messages queued behind it)
CAUSES
  Rank 0 has waited 3.0 s to send 0 bytes to rank 1: rank 1, an FPGA, is in a dead end: never acknowledged
    evidence: never acknowledged
    next: restart the role of the FPGA at 10.0.0.2:2718, then zrlctl reset 1 --from 0
PROBLEMS
  failure: rank 0 refuses to send to rank 1: never acknowledged (when rank 1 has recovered: zrlctl reset 1 --from 0)
  failure: rank 1: kernel echo failed: no such peer (restart zrlmpid)
  warning: no route to host
  warning: rank 0: the kernel granted a receive buffer of 208KiB instead of 16MiB (raise net.core.rmem_max)
  warning: rank 0: the kernel refused UDP segmentation to rank 1: input/output error
  warning: 3 log lines lost (make sure that the log can be written and is read fast enough)
rank 0 has dropped packets: unknown_address 5, stale 2

zrlmpid v1, process 7, uptime 1 min 01 s, configuration f.yaml, 2 ranks (local: 1 host, 1 stand-in)

RANK  TRANSPORTS  OFFLOAD                            RECEIVE BUFFER   SHM RING  SINGLE COPY  OVERSUBSCRIBED
0     udp,shm     batches, segmentation, coalescing  208KiB of 16MiB  1MiB      2 of 3       yes
1     udp         batches, others disabled           64KiB            -         -            no
`
	if got := statusText(&s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
