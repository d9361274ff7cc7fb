package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// example compiles an example in C.
func example(t *testing.T, dir, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command(filepath.Join(dir, "zrlmpicc"), "-O2", "-Wall", "-o", program,
		filepath.Join("../examples/c", name+".c")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// cluster writes a cluster file of upstream's tools.
func cluster(t *testing.T, cpus, fpgas string) string {
	t.Helper()
	return writeFile(t, "cluster.json",
		fmt.Sprintf(`{"nodes": {"cpu": [%s], "fpga": [%s]}, "config": {"com_opt": 0}}`, cpus, fpgas))
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStandInRanks runs C programs with three stand-ins as ranks, in addition to one process or two.
func TestStandInRanks(t *testing.T) {
	dir := builtLibrary(t)
	role := filepath.Join(t.TempDir(), "role")
	if out, err := exec.Command("cc", "-O2", "-Wall", "-o", role,
		"../examples/c/collectives_role.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, tt := range []struct{ program, kernel, args, want string }{
		{"jacobi", "jacobi", "512 3", "512 x 512 cells, 3 iterations, %d workers: "},
		{"collectives", "exec:" + role, "", "five collective calls of %d ranks: ok\n"},
	} {
		program := example(t, dir, tt.program)
		for _, ranks := range []struct{ cpus, fpgas string }{{"0", "1, 2, 3"}, {"0, 3", "1, 2, 4"}} {
			n := 1 + strings.Count(ranks.cpus+","+ranks.fpgas, ",")
			if tt.program == "jacobi" {
				n-- // workers
			}
			addr := loopback.Network(t)
			args := append([]string{"run", "--cluster", cluster(t, ranks.cpus, ranks.fpgas), "--addresses",
				addr + "1-" + addr + "9", "--stand-in", tt.kernel, program}, strings.Fields(tt.args)...)
			out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), args...)
			// The stand-ins report anything that would have wedged an FPGA.
			if err != nil || !strings.Contains(out, fmt.Sprintf(tt.want, n)) || strings.Contains(out, "stand-ins:") {
				t.Errorf("%s, %v: %v\n%s", tt.program, ranks, err, out)
			}
		}
	}
}

// TestFPGALimits checks that messages that the wire of an FPGA does not support are rejected with a standard error
// class, in both ABIs, and that nothing is sent.
func TestFPGALimits(t *testing.T) {
	dir := builtLibrary(t)
	for _, abi := range []string{"standard", "mpich"} {
		addr := loopback.Network(t)
		out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "--cluster",
			cluster(t, "0, 1", "2"),
			"--addresses", addr+"1-"+addr+"9", "--stand-in", "echo", compile(t, dir, abi, "limits.c"))
		if err != nil || sortedLines(out) != "rank 0 of 3: ok\nrank 1 of 3: ok\n" {
			t.Errorf("%s: %v\n%s", abi, err, out)
		}
	}
}

// TestFPGARanks runs C programs with three models of the FPGA's MPE as ranks, at the addresses in a configuration.
// The launcher is zrlctl run, and also MPICH's if it is installed.
func TestFPGARanks(t *testing.T) {
	dir := builtLibrary(t)
	jacobi, collectives := example(t, dir, "jacobi"), example(t, dir, "collectives")
	hydra, _ := exec.LookPath("mpiexec.hydra")
	for _, tt := range []struct {
		name string
		args []string
		role func(f *fpga)
		cpus int
		want string
	}{
		{"jacobi", []string{jacobi, "64", "5"}, func(f *fpga) { jacobiRole(f, 64, 22) }, 1,
			"64 x 64 cells, 5 iterations, 3 workers: "},
		{"jacobi", []string{jacobi, "400", "2"}, func(f *fpga) { jacobiRole(f, 400, 100) }, 2,
			"400 x 400 cells, 2 iterations, 4 workers: "},
		{"collectives", []string{collectives}, collectivesRole, 1, "five collective calls of 4 ranks: ok\n"},
		{"collectives", []string{collectives}, collectivesRole, 2, "five collective calls of 5 ranks: ok\n"},
	} {
		launchers := [][]string{{filepath.Join(dir, "zrlctl"), "run"}}
		if hydra != "" {
			launchers = append(launchers, []string{hydra, "-n", fmt.Sprint(tt.cpus)})
		}
		for _, launcher := range launchers {
			t.Run(fmt.Sprintf("%s-%d-%s", tt.name, tt.cpus, filepath.Base(launcher[0])), func(t *testing.T) {
				addr, size := loopback.Network(t), 3+tt.cpus
				var text strings.Builder
				text.WriteString("ranks:\n")
				for rank := range size {
					what := "peer: fpga"
					if rank == 0 || rank > 3 {
						what = "run: host"
					}
					fmt.Fprintf(&text, "  - {rank: %d, address: %s%d, %s}\n", rank, addr, rank+1, what)
				}
				var roles sync.WaitGroup
				for rank := 1; rank <= 3; rank++ {
					f := newFPGA(t, addr, rank, size)
					roles.Go(func() {
						defer f.conn.Close()
						tt.role(f)
					})
				}
				config := writeFile(t, "job.yaml", text.String())
				command, env := launcher, []string{"ZRLMPI_CONFIG=" + config}
				if launcher[len(launcher)-1] == "run" {
					command, env = append(launcher, "--config", config), nil
				}
				command = append(command, tt.args...)
				out, err := runWithLibrary(t, dir, env, command[0], command[1:]...)
				if err != nil || !strings.Contains(out, tt.want) {
					t.Errorf("%v\n%s", err, out)
				}
				roles.Wait()
			})
		}
	}
}

// fpga is a rank that the model of the FPGA's MPE plays on a socket.
type fpga struct {
	t     *testing.T
	rank  int
	addr  string
	size  int
	conn  *net.UDPConn
	model *mpemodel.Model
	began time.Time
	// loses reports whether the network drops a datagram to the rank. If it is nil, none are dropped.
	loses func(b []byte) bool
}

func newFPGA(t *testing.T, addr string, rank, size int) *fpga {
	t.Helper()
	f := &fpga{t: t, rank: rank, addr: addr, size: size, began: time.Now()}
	var peers []int
	for peer := range size {
		if peer != rank {
			peers = append(peers, peer)
		}
	}
	f.model = mpemodel.New(mpemodel.Config{Rank: rank, Peers: peers, SplitTail: true})
	var err error
	if f.conn, err = net.ListenUDP("udp", f.at(rank)); err != nil {
		t.Fatal(err)
	}
	_ = f.conn.SetReadBuffer(4 << 20)
	return f
}

func (f *fpga) at(rank int) *net.UDPAddr {
	return &net.UDPAddr{IP: net.ParseIP(fmt.Sprint(f.addr, rank+1)), Port: protocol.Port}
}

// call waits until the call in progress has returned, and reports whether it has.
func (f *fpga) call(err error) bool {
	if err != nil {
		f.t.Error(err)
		return false
	}
	b := make([]byte, 2048)
	for {
		for _, p := range f.model.TakePackets() {
			_, _ = f.conn.WriteToUDP(p.Bytes, f.at(p.To)) // packets that cannot be sent are lost
		}
		if !f.model.Busy() {
			return true
		}
		if time.Since(f.began) > jobTime {
			f.t.Errorf("rank %d is in state %s", f.rank, f.model.State())
			return false
		}
		next, ok := f.model.NextEvent()
		if !ok {
			next = time.Since(f.began) + time.Second // to notice that the job has failed
		}
		_ = f.conn.SetReadDeadline(f.began.Add(next))
		switch n, from, err := f.conn.ReadFromUDP(b); {
		case err == nil && f.loses != nil && f.loses(b[:n]):
		case errors.Is(err, net.ErrClosed): // the FPGA was reset
			return false
		case err == nil:
			f.model.Datagram(time.Since(f.began), int(from.IP.To4()[3])-1, b[:n])
		case errors.Is(err, os.ErrDeadlineExceeded):
			f.model.Tick(time.Since(f.began))
		default:
			f.t.Error(err)
			return false
		}
	}
}

func (f *fpga) send(words []uint32, datatype protocol.Datatype) bool {
	return f.call(f.model.Send(time.Since(f.began), 0, words, datatype))
}

// recv receives n words from rank 0.
func (f *fpga) recv(n int) []uint32 {
	if !f.call(f.model.Recv(time.Since(f.began), 0, uint32(n), protocol.Int)) {
		return nil
	}
	words, overrun, _ := f.model.Result()
	if overrun {
		f.t.Errorf("the buffer of rank %d was overrun", f.rank)
		return nil
	}
	return words
}

// jacobiRole is the worker of examples/c/jacobi.c.
func jacobiRole(f *fpga, width, lines int) {
	iterations := f.recv(1)
	if iterations == nil {
		return
	}
	for range iterations[0] {
		from := make([][]uint32, lines+2)
		for y := range from {
			if from[y] = f.recv(width); from[y] == nil {
				return
			}
		}
		for y := range from {
			to := append([]uint32(nil), from[y]...)
			for x := 1; x < width-1 && y > 0 && y <= lines; x++ {
				to[x] = uint32(int32(from[y][x-1]+from[y][x+1]+from[y-1][x]+from[y+1][x]) >> 2)
			}
			if !f.send(to, protocol.Int) {
				return
			}
		}
	}
}

// collectivesRole does the same as examples/c/collectives_role.c.
func collectivesRole(f *fpga) {
	const words, share = 1000, 100
	common, own := f.recv(words), f.recv(share)
	if common == nil || own == nil {
		return
	}
	part := make([]uint32, words)
	for i := range own {
		own[i] += common[i]
	}
	for i := range part {
		part[i] = math.Float32bits(float32(f.rank+1) * float32(common[i]))
		common[i] *= uint32(f.rank + 1)
	}
	if f.send(own, protocol.Int) && f.send(part, protocol.Float) && f.send(common, protocol.Int) {
		f.recv(words)
	}
}

// TestLibraryKilled checks that killing a rank ends the job with an error that names it.
func TestLibraryKilled(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "standard", "killed.c")
	began := time.Now()
	out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "4", program)
	t.Logf("the job took %v", time.Since(began))
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 137 ||
		!strings.HasSuffix(out, "was ended by a signal: killed; 3 other ranks were ended\n") ||
		!strings.Contains(out, "zrlctl: rank 1 (") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryStatus checks that the tools find the job of a C program while it runs, with any launcher.
func TestLibraryStatus(t *testing.T) {
	dir := builtLibrary(t)
	program := compile(t, dir, "mpich", "waits.c")
	launchers := [][]string{{filepath.Join(dir, "zrlctl"), "run", "-n", "3"}}
	if hydra, err := exec.LookPath("mpiexec.hydra"); err == nil {
		launchers = append(launchers, []string{hydra, "-n", "3"})
	}
	find := func(pid int) *control.Job {
		list, err := control.JobMetrics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list {
			if len(j.Reports) > 0 && j.Reports[0].PID == pid {
				return j
			}
		}
		return nil
	}
	for _, launcher := range launchers {
		c := exec.CommandContext(t.Context(), launcher[0], append(launcher[1:], program)...)
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
		in, err1 := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err1, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		pid := 0
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		switch j := find(pid); {
		case j == nil:
			t.Errorf("%s: the job is not found", launcher[0])
		default:
			s := j.Status()
			calls := uint64(0)
			for _, n := range j.Reports[2].RankCounters.Collectives {
				calls += n.Calls
			}
			if len(s.Ranks) != 3 || len(s.Cluster) != 3 || len(s.Silent) != 0 || calls == 0 {
				t.Errorf("%s: %+v", launcher[0], s)
			}
		}
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", launcher[0], err)
		}
		if find(pid) != nil {
			t.Errorf("%s: the job is there after its end", launcher[0])
		}
	}
}

// TestLibraryBound checks that ranks that the launcher binds to one processor each are not assumed to share one.
func TestLibraryBound(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("there is one processor")
	}
	dir := builtLibrary(t)
	for _, bind := range []string{"core", "none"} {
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "zrlctl"), "run", "--bind-to", bind, "-n", "2",
			compile(t, dir, "mpich", "waits.c"))
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"))
		in, err1 := c.StdinPipe()
		out, err2 := c.StdoutPipe()
		if err := errors.Join(err1, err2, c.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscan(out, new(int)); err != nil {
			t.Fatal(err)
		}
		list, err := control.Jobs(t.Context(), fmt.Sprintf("zrlctl_%d", c.Process.Pid))
		if err != nil || len(list) != 1 || len(list[0].Reports) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, r := range list[0].Status().Ranks {
			if r.Oversubscribed {
				t.Errorf("--bind-to %s: %+v", bind, r.RankInfo)
			}
		}
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}
