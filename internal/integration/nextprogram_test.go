package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	attachwire "github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpi"
)

const (
	earlierSocket = "ZRLMPI_TEST_EARLIER_SOCKET"
	// nextPauses is the environment variable that lists the pauses between programs in TestNextProgram, separated by
	// commas, such as 0s,1s,3s. If it is not set, the test does not pause and tries fewer operations.
	nextPauses = "ZRLMPI_NEXT_PROGRAM_PAUSES"
)

// earlierOps lists the operations in the middle of which a program ends.
var earlierOps = []struct {
	name  string
	begin func(world *mpi.Comm, peer int, one, many []int32) (mpi.Request, error)
	// sends means that the operation may complete as soon as it has begun. Its messages, or the answers to them, then
	// wait for the next program.
	sends bool
}{
	{"Isend", func(w *mpi.Comm, peer int, one, _ []int32) (mpi.Request, error) {
		return mpi.Isend(w, one, peer, 0)
	}, true},
	{"Irecv", func(w *mpi.Comm, peer int, one, _ []int32) (mpi.Request, error) {
		return mpi.Irecv(w, one, peer, 0)
	}, false},
	{"Isend and Irecv", func(w *mpi.Comm, peer int, one, many []int32) (mpi.Request, error) {
		if _, err := mpi.Isend(w, one, peer, 0); err != nil {
			return mpi.Request{}, err
		}
		return mpi.Irecv(w, many[:1], peer, 0)
	}, true},
	{"Ibcast", func(w *mpi.Comm, _ int, one, _ []int32) (mpi.Request, error) { return mpi.Ibcast(w, one, 1) }, false},
	{"Ireduce", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Ireduce(w, one, many[:1], mpi.Sum, 0)
	}, false},
	{"Iallreduce", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Iallreduce(w, one, many[:1], mpi.Sum)
	}, false},
	{"Irecv of any source", func(w *mpi.Comm, _ int, one, _ []int32) (mpi.Request, error) {
		return mpi.Irecv(w, one, mpi.AnySource, 0)
	}, false},
	{"Issend", func(w *mpi.Comm, peer int, one, _ []int32) (mpi.Request, error) {
		return mpi.Issend(w, one, peer, 0)
	}, true},
	{"Irsend", func(w *mpi.Comm, peer int, one, _ []int32) (mpi.Request, error) {
		return mpi.Irsend(w, one, peer, 0)
	}, true},
	{"Isend of 5000 words", func(w *mpi.Comm, peer int, _, _ []int32) (mpi.Request, error) {
		return mpi.Isend(w, make([]int32, 5000), peer, 0)
	}, true},
	{"Ibarrier", func(w *mpi.Comm, _ int, _, _ []int32) (mpi.Request, error) { return mpi.Ibarrier(w) }, false},
	{"Igather", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Igather(w, one, many, 0)
	}, false},
	{"Iscatter", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Iscatter(w, many, one, 1)
	}, false},
	{"Iallgather", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Iallgather(w, one, many)
	}, false},
	{"Ialltoall", func(w *mpi.Comm, _ int, _, many []int32) (mpi.Request, error) {
		return mpi.Ialltoall(w, many, slices.Clone(many))
	}, false},
	{"Iscan", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Iscan(w, one, many[:1], mpi.Sum)
	}, true},
	{"Iexscan", func(w *mpi.Comm, _ int, one, many []int32) (mpi.Request, error) {
		return mpi.Iexscan(w, one, many[:1], mpi.Sum)
	}, true},
}

// fewOps is the number of earlierOps in each run by default.
const fewOps = 6

// earlierEnds lists the ways in which a program ends: killed while it waits, exit at once without notice, exit after an
// error of a wait, or detach.
var earlierEnds = []string{"kill", "exit", "error", "detach"}

// earlier is a program that ends in the middle of an operation. Its arguments are the rank, the operation, and the way
// to end.
func earlier(socket string) {
	rank, _ := strconv.Atoi(os.Args[1])
	c, err := attach.Dial(context.Background(), socket, rank)
	if err != nil {
		fmt.Println(err)
		return
	}
	world, err := mpi.New(c)
	if err != nil {
		fmt.Println(err)
		return
	}
	number, _ := strconv.Atoi(os.Args[2])
	r, err := earlierOps[number].begin(world, 1-rank, []int32{-7}, []int32{-7, -7})
	if err != nil { // some are impossible with an FPGA
		fmt.Println("impossible:", err)
	} else {
		fmt.Println("begun")
	}
	switch os.Args[3] {
	case "kill":
		select {}
	case "exit":
		os.Exit(3)
	case "error":
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer stop()
		_ = mpi.Waitall(ctx, []mpi.Request{r}, nil)
	}
	_ = c.Close(ended())
}

// TestNextProgram checks that after programs have ended in the middle of an operation, the next programs on the same
// ranks receive exactly the messages that they send to each other.
func TestNextProgram(t *testing.T) {
	ops, pauses := len(earlierOps), []time.Duration{0}
	if list := os.Getenv(nextPauses); list == "" {
		ops = fewOps
	} else {
		pauses = nil
		for text := range strings.SplitSeq(list, ",") {
			pause, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			pauses = append(pauses, pause)
		}
	}
	for _, link := range []string{"transport: udp", "transport: tcp", "profile: v0.9", "profile: extended"} {
		for _, peer := range []string{"host", "standin"} {
			if peer == "standin" && strings.Contains(link, "profile") {
				continue // hosts suffice for the other profiles
			}
			t.Run(link+", "+peer, func(t *testing.T) {
				t.Parallel()
				n := &nextWorld{hosts: 2}
				if n.start(t, link, peer); peer != "host" {
					n.hosts = 1
				}
				for i := range earlierOps[:ops] {
					for _, end := range earlierEnds {
						clean := end == "error" || end == "detach"
						if earlierOps[i].sends && (strings.HasSuffix(link, "extended") || peer != "host" && clean) {
							continue
						}
						for _, pause := range pauses {
							n.end(t, i, end)
							time.Sleep(pause) // the pause under test
							if err := n.next(t); err != nil {
								t.Fatalf("%v after %s, which was ended by %s: %v", pause, earlierOps[i].name, end, err)
							}
						}
					}
				}
			})
		}
	}
}

// nextWorld is a daemon with two ranks. The first ranks are hosts, and any other is a stand-in.
type nextWorld struct {
	socket string
	hosts  int
}

func (n *nextWorld) start(t *testing.T, link, peer string) {
	t.Helper()
	p := newPlace(t)
	if peer != "host" {
		peer = "standin, kernel: echo"
	}
	text := fmt.Sprintf("control: {socket: %q}\ndefaults: {%s}\nranks:\n", filepath.Join(t.TempDir(), "c.sock"), link)
	for rank, run := range []string{"host", peer} {
		text += fmt.Sprintf("  - {rank: %d, address: %s%d, run: %s}\n", rank, p, rank+1, run)
	}
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n.socket = cfg.AttachSocket()
	startDaemon(t, cfg)
}

// end runs a program on each host until it ends in the middle of an operation.
func (n *nextWorld) end(t *testing.T, op int, end string) {
	t.Helper()
	var programs []*exec.Cmd
	var outputs []*bufio.Reader
	for rank := range n.hosts {
		cmd := exec.Command(os.Args[0], strconv.Itoa(rank), strconv.Itoa(op), end)
		cmd.Env = append(os.Environ(), earlierSocket+"="+n.socket)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		programs, outputs = append(programs, cmd), append(outputs, bufio.NewReader(out))
	}
	for i, cmd := range programs {
		line, err := outputs[i].ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "begun") && !strings.HasPrefix(line, "impossible") {
			t.Errorf("rank %d says %q: %v", i, line, err)
		}
		if end == "kill" {
			_ = cmd.Process.Kill()
		}
	}
	for _, cmd := range programs {
		_ = cmd.Wait()
	}
}

// attach returns a client as soon as the daemon has noticed that the previous program is gone.
func (n *nextWorld) attach(ctx context.Context, rank int) (*attach.Client, error) {
	for {
		c, err := attach.Dial(ctx, n.socket, rank)
		if refused, ok := errors.AsType[*attach.RefusedError](err); !ok || refused.Reason != attachwire.Busy ||
			ctx.Err() != nil {
			return c, err
		}
	}
}

// next runs the next programs: rank 1 sends 0, 1, 2 to rank 0, or a stand-in echoes them.
func (n *nextWorld) next(t *testing.T) error {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	worlds := make([]*mpi.Comm, n.hosts)
	for rank := range worlds {
		c, err := n.attach(ctx, rank)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		if worlds[rank], err = mpi.New(c); err != nil {
			return err
		}
	}
	sent := make(chan error, 1)
	if n.hosts == 2 {
		go func() {
			var err error
			for k := range int32(3) {
				if err == nil {
					err = mpi.Send(ctx, worlds[1], []int32{k}, 0, 0)
				}
			}
			sent <- err
		}()
	}
	for k := range int32(3) {
		if n.hosts == 1 {
			if err := mpi.Send(ctx, worlds[0], []int32{k}, 1, 0); err != nil {
				return err
			}
		}
		got := []int32{-1}
		if _, err := mpi.Recv(ctx, worlds[0], got, 1, 0); err != nil {
			return err
		}
		if got[0] != k {
			return fmt.Errorf("%d was received, and %d sent", got[0], k)
		}
	}
	if n.hosts == 2 {
		return <-sent
	}
	return nil
}
