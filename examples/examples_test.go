// Package examples_test runs the examples like users: as all ranks in one process, and as rank 0 of the clusters in
// folder deploy, whose other ranks are stand-ins.
package examples_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/standin/wedgetest"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

// programs is the folder of the compiled examples.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "examples")
	if err != nil {
		panic(err)
	}
	programs = dir
	if out, err := exec.Command("go", "build", "-o", dir, "./...").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		os.Exit(1)
	}
	code := statetest.Run(m)
	os.RemoveAll(dir)
	os.Exit(code)
}

// output is the exit code and output of an example.
type output struct {
	code           int
	stdout, stderr string
}

// run runs the command line of an example. Of the variables that describe a cluster, only those in env are set.
func run(t *testing.T, commandLine string, env ...string) output {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	args := strings.Fields(commandLine)
	// The go command caches test results, and tracks the files that tests read.
	if _, err := os.ReadFile(filepath.Join(args[0], "main.go")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(programs, args[0]), args[1:]...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it then reports its wait
	cmd.Env = append(os.Environ(), job.EnvSocket+"=", job.EnvConfig+"=", job.EnvRank+"=")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return output{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// prints checks that a run succeeded and that its output contains all these texts.
func (o output) prints(t *testing.T, texts ...string) {
	t.Helper()
	if o.code != 0 || o.stderr != "" {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("%q is missing:\n%s", text, o.stdout)
		}
	}
}

// fails checks that a run ended with the given exit code and an error that contains a text.
func (o output) fails(t *testing.T, code int, text string) {
	t.Helper()
	if o.code != code || !strings.Contains(o.stderr, text) {
		t.Errorf("exit code %d, want %d and %q; %s", o.code, code, text, o.stderr)
	}
}

func TestInOneProcess(t *testing.T) {
	for _, c := range []struct {
		commandLine string
		prints      []string
	}{
		{"hello", []string{"rank 0 of 4: rank 1 sent 1\n", "rank 3 of 4: rank 2 sent 2\n"}},
		{"pingpong", []string{"rank 1,     1 words: ", "rank 1, 65536 words: "}},
		{"ring", []string{"    1 words: mean of a round ", "65536 words: mean of a round "}},
		// Computed by hand, the corner cell: 64, 80, 92, 98.
		{"jacobi -size 30 -iterations 4",
			[]string{"30 x 30 cells, iterations: 4, ranks: 5, time: ", "cell   1,   1:  98\n"}},
		{"jacobi -size 17 -iterations 1 -ranks 1",
			[]string{"iterations: 1, ranks: 1, time: ", "cell   1,   1:  64\ncell   2,   2:   0\n"}},
		{"jacobi -size 3 -ranks 2", []string{"3 x 3 cells"}},
		{"kmeans -vectors 20 -clusters 1 -ranks 4",
			[]string{"vectors: 20, clusters: 1, ", "cluster 0:    20 vectors around "}},
		{"kmeans -ranks 1", []string{"vectors: 20000, clusters: 8, iterations: 10, ranks: 1, time: ",
			"cluster 0:  1222 vectors around [ -902   395   105]\n"}},
		{"matvec", []string{"300 x 300 numbers, ranks: 8, time: "}},
		{"matvec -size 1 -ranks 3", []string{"1 x 1 numbers, ranks: 3, time: "}},
		{"backsub", []string{"equations: 600, ranks: 8, time: "}},
		{"backsub -size 7 -ranks 1", []string{"equations: 7, ranks: 1, time: "}},
	} {
		t.Run(c.commandLine, func(t *testing.T) { run(t, c.commandLine).prints(t, c.prints...) })
	}
}

// TestFullOutput checks that an example fails if it cannot write its output.
func TestFullOutput(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: only Linux has /dev/full")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, name := range []string{"hello", "pingpong", "ring", "jacobi", "kmeans", "matvec", "backsub"} {
		var stderr strings.Builder
		cmd := exec.Command(filepath.Join(programs, name))
		cmd.Stdout, cmd.Stderr = full, &stderr
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: %v: %s", name, err, &stderr)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		commandLine string
		code        int
		says        string
	}{
		{"jacobi -ranks 0", 2, "a cluster of 0 ranks"},
		{"jacobi -size two", 2, "two"},
		{"jacobi -size 2", 1, "2 columns"},
		{"jacobi -size 16385", 1, "16385 columns"},
		{"kmeans -vectors 4", 1, "-vectors 4"},
		{"kmeans -vectors 1000001", 1, "-vectors 1000001"},
		{"kmeans -vectors 4 -clusters 2", 1, "4 vectors are too few for 5 ranks"},
		{"kmeans -clusters 0", 1, "-clusters 0"},
		{"matvec -size 0", 1, "-size 0"},
		{"matvec -size 16385", 1, "-size 16385"},
		{"backsub -size 0", 1, "-size 0"},
		{"backsub -size 16385", 1, "-size 16385"},
	} {
		run(t, c.commandLine).fails(t, c.code, c.says)
	}
}

func TestWithStandins(t *testing.T) {
	for _, c := range []struct {
		cluster, commandLine string
		prints               []string
	}{
		{"demo", "hello", []string{"rank 0 of 4: rank 1 sent 0\n"}},
		{"demo", "pingpong -count 2", []string{"rank 1,     1 words: ", "rank 3, 65536 words: "}},
		{"ring", "ring -rounds 5", []string{"65536 words: mean of a round "}},
		{"jacobi", "jacobi -size 512 -iterations 2", []string{"512 x 512 cells, iterations: 2, ranks: 5, time: "}},
		{"kmeans", "kmeans -vectors 3001", []string{"vectors: 3001, clusters: 8, ", " ranks: 5, time: "}},
		{"matvec", "matvec", []string{"300 x 300 numbers, ranks: 8, time: "}},
		{"backsub", "backsub -size 150", []string{"equations: 150, ranks: 8, time: "}},
	} {
		t.Run(c.commandLine, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "deploy", c.cluster+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			run(t, c.commandLine, start(t, string(text))...).prints(t, c.prints...)
		})
	}
}

// TestRingFindsChangedMessage checks the error for a changed message: the last rank sends its own words.
func TestRingFindsChangedMessage(t *testing.T) {
	env := start(t, `ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, kernel: sink}
  - {rank: 2, address: 127.0.0.3, run: standin, kernel: source, kernel_options: {words: 1}}
`)
	run(t, "ring -rounds 3", env...).fails(t, 1, "ring: rank 0: message 0 of 1 words came back from rank 2 changed\n")
}

// start starts a daemon with a configuration, after moving it to unused addresses. It returns the environment for rank
// 0: attached to the daemon if the daemon runs that rank, otherwise in the process of the example.
func start(t *testing.T, text string) (env []string) {
	t.Helper()
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "attach.sock")
	text = strings.ReplaceAll(text, "127.0.0.", loopback.Network(t))
	text = fmt.Sprintf("control: {socket: \"\"}\nattach: {socket: %q}\nhttp: {listen: \"\"}\n%s", socket, text)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(notice, 1)
	d, err := daemon.New(cfg, daemon.Options{ReadyWriter: ready, Log: wedgetest.Log(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("the daemon does not start")
	}
	if cfg.Ranks[0].Run == config.RunHost {
		return []string{job.EnvSocket + "=" + socket}
	}
	return []string{job.EnvConfig + "=" + file, job.EnvRank + "=0"}
}

// notice is a channel that receives a value on each Write.
type notice chan struct{}

func (n notice) Write(b []byte) (int, error) {
	select {
	case n <- struct{}{}:
	default:
	}
	return len(b), nil
}
