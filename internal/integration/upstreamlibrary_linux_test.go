package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/examples/apps/jacobi"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// libraryMade builds the C library once, into a folder that TestMain removes.
var libraryMade = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zrlmpi-library")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("../../lib/build.sh", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("lib/build.sh: %w\n%s", err, out)
	}
	return dir, nil
})

// upstreamAPI is a library with upstream's C++ API: upstream's own, or ours.
type upstreamAPI struct {
	name string
	// compile begins a compiler command, and link completes it.
	compile, link []string
}

// ourAPI returns libzrlmpi_upstream.
func ourAPI(t *testing.T) upstreamAPI {
	t.Helper()
	if testing.Short() {
		t.Skip("building the C library takes a minute")
	}
	needs.Program(t, "upstream's C++ API", "g++", "g++")
	dir, err := libraryMade()
	if err != nil {
		t.Fatal(err)
	}
	return upstreamAPI{"ours", []string{filepath.Join(dir, "zrlmpicxx"), "-abi=upstream"}, nil}
}

// itsAPI returns upstream's library from a checkout.
func itsAPI(t *testing.T) upstreamAPI {
	t.Helper()
	checkout := os.Getenv(sourceEnv)
	if checkout == "" {
		t.Skipf("NOT TESTED against upstream's CPU library: set %s to a checkout of github.com/cloudFPGA/ZRLMPI",
			sourceEnv)
	}
	dir := filepath.Join(checkout, "LIB/SW")
	return upstreamAPI{"upstream's", []string{"g++", "-w", "-pthread", "-I", dir},
		[]string{filepath.Join(dir, "ZRLMPI.cpp"), filepath.Join(dir, "zrlmpi_common.cpp")}}
}

// build compiles a program like upstream.
func (a upstreamAPI) build(t *testing.T, source string, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	args := slices.Concat(a.compile[1:], []string{"-std=c++11", "-g", "-D_XOPEN_SOURCE=700", "-o", path}, options,
		[]string{source}, a.link)
	if out, err := exec.CommandContext(t.Context(), a.compile[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s, %s: %v\n%s", source, a.name, err, out)
	}
	return path
}

// apiPairs returns pairs of libraries: one for rank 0, and one for the other ranks.
func apiPairs(t *testing.T) [][2]upstreamAPI {
	t.Helper()
	ours, its := ourAPI(t), itsAPI(t)
	return [][2]upstreamAPI{{ours, ours}, {ours, its}, {its, ours}}
}

// startUpLines returns the start-up lines of n ranks at unused addresses.
func startUpLines(t testing.TB, n int) [][]string {
	p := newPlace(t)
	lines := make([][]string, n)
	for r := range lines {
		lines[r] = []string{"udp", fmt.Sprintf("%s%d", p, r+1), strconv.Itoa(n), strconv.Itoa(r)}
		for other := range n {
			if other != r {
				lines[r] = append(lines[r], fmt.Sprintf("%s%d", p, other+1))
			}
		}
	}
	return lines
}

// runProgram runs a program from the command line and returns its output.
func runProgram(ctx context.Context, program string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.String(), err
}

// runRanks runs rank 0 and the other ranks, which use another program, and returns rank 0's output. All must exit
// without an error.
func runRanks(t *testing.T, n int, rank0, others string, env []string, args ...string) string {
	t.Helper()
	out, err := runLines(t.Context(), startUpLines(t, n), rank0, others, env, args...)
	if err != nil {
		t.Error(err)
	}
	return out
}

// runLines is runRanks with start-up lines. It returns the first error of a rank, which ends the other ranks.
func runLines(ctx context.Context, lines [][]string, rank0, others string, env []string, args ...string) (string,
	error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	printed := make([]string, len(lines))
	all, ctx := errgroup.WithContext(ctx)
	for r := len(lines) - 1; r >= 0; r-- {
		program := others
		if r == 0 {
			program = rank0
		}
		all.Go(func() error {
			out, err := runProgram(ctx, program, env, append(lines[r], args...)...)
			if printed[r] = out; err != nil {
				return fmt.Errorf("rank %d: %w\n%s", r, err, out)
			}
			return nil
		})
	}
	err := all.Wait()
	return printed[0], err
}

// asCPU makes ranks on our library assume that the other ranks use upstream's library, and asSoftware that they use
// ours.
var asCPU, asSoftware = []string{"ZRLMPI_PEER=cpu"}, []string{"ZRLMPI_PEER=software"}

// TestUpstreamAPI runs a program written for upstream's library on our library on both sides, for each assumption about
// the other side.
func TestUpstreamAPI(t *testing.T) {
	program := ourAPI(t).build(t, "testdata/pingpong.cpp")
	for _, env := range [][]string{nil, asCPU, asSoftware} {
		for _, size := range upstreamSizes {
			if out := runRanks(t, 2, program, program, env, size.arg); !strings.Contains(out, "words: ok") {
				t.Errorf("%v, %s: %s", env, size.arg, out)
			}
		}
	}
}

// TestUpstreamAPIMeets runs the program as the host of a stand-in with the deployed FPGA's quirks, and as the peer of a
// host.
func TestUpstreamAPIMeets(t *testing.T) {
	program := ourAPI(t).build(t, "testdata/pingpong.cpp")
	// The stand-in retransmits after an FPGA's timeouts, in real time. An oversubscribed host may exceed these for
	// longer messages.
	t.Run("a stand-in", func(t *testing.T) { meetAStandIn(t, program, 600_000) })
	t.Run("a host", func(t *testing.T) {
		t.Setenv("ZRLMPI_PEER", "cpu") // the host treats it as upstream's
		meetAHost(t, program)
	})
}

// TestUpstreamAPIFails checks that situations in which upstream's library would hang cause an error line with the
// reason, and an exit code.
func TestUpstreamAPIFails(t *testing.T) {
	api := ourAPI(t)
	calls, pingpong := api.build(t, "testdata/calls.cpp"), api.build(t, "testdata/pingpong.cpp")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	lines := startUpLines(t, 2)
	soon := []string{"ZRLMPI_TIMEOUT=300ms"}
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("ranks: [{rank: 0, address: 127.1.2.3, run: host}, {rank: 1, address: "+
		"127.1.2.4, peer: cpu}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"a receiver that is not there": {soon, append(slices.Clone(lines[0]), "347"),
			"rank 0 of 2: MPI_Send has lasted 300ms, which ends the program: rank 0 waits for CLEAR_TO_SEND from rank 1"},
		"a sender that is not there": {soon, append(slices.Clone(lines[1]), "347"),
			"rank 1 of 2: MPI_Recv_c has lasted 300ms, which ends the program: rank 1 waits for SEND_REQUEST " +
				"from rank 0"},
		"no start-up line": {nil, []string{"347"}, "the start-up line is PROGRAM udp"},
		"an address of another host": {nil, []string{"udp", "192.0.2.77", "2", "0", "192.0.2.78"},
			"this machine does not have that address"},
		"another map": {[]string{"ZRLMPI_CONFIG=" + file}, lines[0],
			"in the start-up line and at 127.1.2.3:2718 in the configuration"},
		"no such time": {[]string{"ZRLMPI_TIMEOUT=soon"}, lines[0], `ZRLMPI_TIMEOUT="soon": must be a time`},
	} {
		out, err := runProgram(ctx, pingpong, tc.env, tc.args...)
		if err == nil || ctx.Err() != nil || !strings.Contains(out, tc.want) {
			t.Errorf("%s: %v, without %q:\n%s", name, err, tc.want, out)
		}
	}

	t.Run("MPI_Abort", func(t *testing.T) {
		source := filepath.Join(t.TempDir(), "abort.cpp")
		text := "#include \"ZRLMPI.hpp\"\nint app_main(int, char **) { printf(\"before\\n\"); " +
			"MPI_Abort(MPI_COMM_WORLD, 7); }\n"
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := runProgram(ctx, api.build(t, source), nil, lines[0]...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 || !strings.Contains(out, "before\n") ||
			!strings.Contains(out, "rank 0 of 2: MPI_Abort ends the job with code 7") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("a message that is longer than the buffer", func(t *testing.T) {
		p := startCalls(t, calls, 1, []string{lines[0][1], lines[1][1]})
		defer p.kill()
		sender := startCalls(t, calls, 0, []string{lines[0][1], lines[1][1]})
		defer sender.kill()
		p.recv(0, 2)
		sender.send(1, []uint32{1, 2, 3})
		for range p.returned {
		}
		if out := p.stderr.String(); p.err == nil ||
			!strings.Contains(out, "rank 0 sent 3 words, but the posted buffer holds 2") {
			t.Errorf("%v: %s", p.err, out)
		}
	})
}

// TestUpstreamAPILosses checks that between two programs on our library, a lost datagram has no effect or, in rare
// cases, causes an error.
func TestUpstreamAPILosses(t *testing.T) {
	calls := ourAPI(t).build(t, "testdata/calls.cpp")
	t.Setenv("ZRLMPI_PEER", "software")
	t.Setenv("ZRLMPI_TIMEOUT", "15s")
	losses := loseBetween(t, 40, calls, calls)
	if n := losses.outcomes[delivered]; n < 40 {
		t.Errorf("%d of 40 messages were delivered", n)
	}
}

// TestUpstreamAPILossesWithUpstream checks losses with upstream's library on one side. A loss may cause an error or
// make upstream's program wait forever, but must never cause wrong words on our side.
func TestUpstreamAPILossesWithUpstream(t *testing.T) {
	ours, its := ourAPI(t).build(t, "testdata/calls.cpp"), buildCalls(t)
	t.Setenv("ZRLMPI_PEER", "cpu")
	t.Setenv("ZRLMPI_TIMEOUT", "15s")
	loseBetween(t, 30, ours, its)
	loseBetween(t, 30, its, ours)
}

// loseBetween makes one program send messages to the other, each with one lost datagram.
func loseBetween(t *testing.T, losses int, sender, receiver string) *lossTally {
	t.Helper()
	tally := &lossTally{outcomes: map[outcome]int{}}
	var all sync.WaitGroup
	for w := range lossWorkers {
		all.Go(func() {
			for i := w; i < losses; i += lossWorkers {
				o, lost, err := loseOne(t, i, sender, receiver)
				tally.add(o, lost, err)
			}
		})
	}
	all.Wait()
	tally.report(t, losses)
	return tally
}

func loseOne(t *testing.T, i int, sender, receiver string) (outcome, string, error) {
	words := make([]uint32, 347+i*37%4000)
	for k := range words {
		words[k] = uint32(i*len(words)+k) * 0x9e3779b9
	}
	ips := labIPs(t)
	var r *relay
	if !eventually(func() bool {
		var err error
		r, err = newRelay(ips[0], ips[3], ips[1], ips[2])
		return err == nil
	}) {
		t.Error("the relay's addresses are in use")
		return hung, "", nil
	}
	defer r.close()
	to := startCalls(t, receiver, 1, []string{ips[1], ips[2]})
	defer to.kill()
	from := startCalls(t, sender, 0, []string{ips[0], ips[3]})
	defer from.kill()
	datagrams := 3 + (32+4*len(words)+1415)/1416
	r.lose(i % datagrams)
	to.recv(0, len(words))
	from.send(1, words)
	line, arrived := next(to)
	_, returned := next(from)
	lost := fmt.Sprintf("%s lost, %d words", r.lose(-1), len(words))
	switch {
	case to.overran():
		return crashed, lost, nil
	case arrived && line != receivedLine(words):
		return wrong, lost, nil
	case arrived && returned:
		return delivered, lost, nil
	case from.err != nil || to.err != nil:
		return failed, lost, fmt.Errorf("%s%s", from.stderr.String(), to.stderr.String())
	case arrived:
		return waits, lost, nil
	}
	return failed, lost, fmt.Errorf("both wait: %s%s", from.stderr.String(), to.stderr.String())
}

// next waits until a program prints a line or exits, or until lossTimeout expires.
func next(p *callsProgram) (string, bool) {
	select {
	case line, ok := <-p.returned:
		return line, ok
	case <-time.After(lossTimeout):
		return "", false
	}
}

// asProgram turns one of upstream's plain examples into a program for its library, with the replacements made by its
// compiler.
func asProgram(t *testing.T, example string) (source string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{example + ".h", example + ".c"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv(sourceEnv), upstreamTools, "examples", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range [][2]string{{`#include ["<]mpi\.h[">]`, `#include "ZRLMPI.hpp"`},
			{`int main\(`, `int app_main(`}, {`MPI_Init\( *&argc, *&argv *\)`, `MPI_Init()`}} {
			text = regexp.MustCompile(r[0]).ReplaceAll(text, []byte(r[1]))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, example+".c")
}

// TestUpstreamExamplesOnOurLibrary runs upstream's examples with its library on one side and ours on the other, and
// with ours on both sides.
func TestUpstreamExamplesOnOurLibrary(t *testing.T) {
	pairs := apiPairs(t)
	examples := upstreamExamples(t)
	for _, x := range examples {
		for _, pair := range pairs {
			t.Run(fmt.Sprintf("%s, rank 0 %s, others %s", x.name, pair[0].name, pair[1].name), func(t *testing.T) {
				x.check(t, runRanks(t, x.ranks, x.build(t, pair[0]), x.build(t, pair[1]), asCPU, x.args...))
			})
		}
	}
}

// TestUpstreamExamplesWithLosses checks that upstream's examples with our library on both sides are unaffected by the
// loss of every hundredth datagram.
func TestUpstreamExamplesWithLosses(t *testing.T) {
	api := ourAPI(t)
	itsAPI(t)
	for _, x := range upstreamExamples(t) {
		t.Run(x.name, func(t *testing.T) {
			program := x.build(t, api)
			lossy := lossyNetwork(t)(program)
			out, err := runLines(t.Context(), lossyLines(t, x.ranks), lossy, lossy, asSoftware, x.args...)
			if err != nil {
				t.Fatal(err)
			}
			x.check(t, out)
		})
	}
}

// lossyNetwork creates a network that loses every hundredth datagram to a rank, and returns a function that makes a
// program run there. Losses are not random, because the loss of both DATA and an ACK of the receiver's last message may
// end the message with an error.
func lossyNetwork(t *testing.T) func(program string) string {
	t.Helper()
	nft := needs.Program(t, "upstream's programs with losses", "nft", "nftables")
	host := netnstest.New(t, "upstream's programs with losses")
	host.IP("addr add 10.0.0.1/8 dev lo")
	host.Run(nft, "add table inet loss; add chain inet loss in { type filter hook input priority 0; }; add rule inet "+
		"loss in udp dport 2718 numgen inc mod 100 == 0 drop")
	inside := "--net=/proc/" + host.Name() + "/ns/net"
	return func(program string) string {
		script := filepath.Join(t.TempDir(), "lossy")
		if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec nsenter %s %s \"$@\"\n", inside, program),
			0o700); err != nil {
			t.Fatal(err)
		}
		return script
	}
}

// lossyLines returns start-up lines with which ranks do not treat each other as ranks of one host, where no datagram is
// lost.
func lossyLines(t testing.TB, n int) [][]string {
	lines := startUpLines(t, n)
	for _, line := range lines {
		for i, word := range line {
			if rest, ok := strings.CutPrefix(word, "127."); ok {
				line[i] = "10." + rest
			}
		}
	}
	return lines
}

// upstreamExample is one of upstream's programs. All its ranks are CPU ranks here.
type upstreamExample struct {
	name  string
	ranks int
	args  []string
	build func(t *testing.T, api upstreamAPI) string
	check func(t *testing.T, out string)
}

func upstreamExamples(t *testing.T) []upstreamExample {
	t.Helper()
	source := newUpstreamSource(t)
	const ranks = 5
	plain := func(name string, ranks int, message string) upstreamExample {
		return upstreamExample{
			name: name, ranks: ranks,
			build: func(t *testing.T, api upstreamAPI) string {
				return api.build(t, asProgram(t, name), "-x", "c++")
			},
			check: func(t *testing.T, out string) {
				if n := strings.Count(out, message); n != 5 {
					t.Errorf("%d messages came back:\n%s", n, out)
				}
			},
		}
	}
	compiled := func(name string, args []string, check func(t *testing.T, out string)) upstreamExample {
		p := source.build(name, ranks-1, 0)
		return upstreamExample{
			name: name, ranks: ranks, args: args, check: check,
			build: func(t *testing.T, api upstreamAPI) string {
				return api.build(t, filepath.Join(p.dir, "app_sw.cpp"), "-w", "-DZRLMPI_SW_ONLY", "-I", p.dir)
			},
		}
	}
	return []upstreamExample{
		plain("pingpong", 2, "received msg 0xcaffee"),
		plain("triangle", 3, "received message 0xcaffee"),
		compiled("jacobi2d", nil, func(t *testing.T, out string) {
			if got := printedGrid(t, out, 0); !slices.Equal(got, serialJacobi(jacobi.DefaultColumns)) {
				t.Errorf("another result, of %d cells:\n%.2000s", len(got), out)
			}
		}),
		compiled("kmeans", kmeansFile(t), func(t *testing.T, out string) {
			if got, want := printedKmeans(t, out), serialKmeans(t, ranks); !reflect.DeepEqual(got, want) {
				t.Errorf("%v\nwant\n%v", got, want)
			}
		}),
	}
}

// TestUpstreamHostsOnOurLibraryMeetKernels runs upstream's host programs on our library, with our stand-ins and the
// programs that upstream's compiler generates for FPGAs.
func TestUpstreamHostsOnOurLibraryMeetKernels(t *testing.T) {
	api, source := ourAPI(t), newUpstreamSource(t)
	const fpgas = 7
	for _, x := range []example{jacobiExample, kmeansExample} {
		for comOpt := range 2 {
			t.Run(fmt.Sprintf("%s com_opt %d", x.name, comOpt), func(t *testing.T) {
				p := source.build(x.name, fpgas, comOpt)
				host := api.build(t, filepath.Join(p.dir, "app_sw.cpp"), "-w", "-DZRLMPI_SW_ONLY", "-I", p.dir)
				cfg := upstreamCluster(t, 1+fpgas, "peer: cpu", "kernel: \"exec:"+p.role+"\"", "")
				startDaemon(t, cfg)
				if got, want := x.read(t, runHost(t, cfg, host, x.args(t)...)),
					x.want(t, 1+fpgas); !reflect.DeepEqual(got, want) {
					t.Errorf("%v\nwant\n%v", got, want)
				}
			})
		}
	}
}
