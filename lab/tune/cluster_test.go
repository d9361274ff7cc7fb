package tune

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestRun makes a small measurement. It checks that every algorithm of every collective gives the right result over all
// transports.
func TestRun(t *testing.T) {
	for _, transports := range [][]string{{"shm", "udp"}, {"tcp"}} {
		t.Run(strings.Join(transports, " "), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var progress strings.Builder
			r, err := Run(ctx, Options{Quick: true, Transports: transports, Ranks: []int{2, 3}}, &progress)
			if err != nil || r.Err() != nil {
				t.Fatalf("%v, %+v\n%s", err, r, progress.String())
			}
			d := r.Table.Document()
			if (d.Memory != nil || d.OversubscribedMemory != nil) != (len(transports) == 2) {
				t.Fatalf("%+v", d)
			}
			entries := networkEntries(d)
			for _, e := range entries {
				for _, s := range e.Medians {
					for i, us := range s.Micros {
						if !(us > 0) && e.Bytes[i] <= 8 && s.Choice.Segment == 0 {
							t.Errorf("%v of %d ranks, %v: %v", choice.CollectiveName(coll.Collective(e.Collective)), e.Ranks,
								s.Choice, s.Micros)
						}
					}
				}
			}
			if len(entries) != 22 {
				t.Errorf("%d entries", len(entries))
			}
			d.ForEachClass(func(class choice.Class, c *collectives.ClassTable) {
				if c.Link.Alpha <= 0 || c.Link.Beta <= 0 {
					t.Errorf("%s: %+v", class, c.Link)
				}
			})
		})
	}
}

// aCluster starts n ranks.
func aCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c, err := startCluster(t.Context(), t.TempDir(), "udp", n, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func binomial(bytes, iterations int) job {
	return job{Collective: "bcast", By: choice.Choice{Algorithm: "binomial"}, Bytes: bytes, Iterations: iterations}
}

func TestClusterMistakes(t *testing.T) {
	for _, x := range []struct {
		j    job
		says string
	}{
		{job{Collective: "x"}, `unknown collective "x"`},
		{binomial(7, 1), "a job of 7 bytes and 1 calls"},
		{binomial(-4, 1), "a job of -4 bytes and 1 calls"},
		{binomial(8, maxIterations+1), "a job of 8 bytes and 501 calls"},
		{job{Collective: "bcast", By: choice.Choice{Algorithm: "ring"}}, "ring"},
	} {
		c := aCluster(t, 2)
		if nanos, err := c.measure(t.Context(), binomial(8, 3)); err != nil || len(nanos) != 3 || nanos[0] <= 0 {
			t.Errorf("%v, %v", nanos, err)
		}
		if nanos, err := c.measure(t.Context(), x.j); err == nil || !strings.Contains(err.Error(), x.says) ||
			nanos != nil {
			t.Errorf("%+v: %v, %v", x.j, nanos, err)
		}
		if nanos, err := c.measure(t.Context(), binomial(8, 1)); err == nil {
			t.Errorf("%+v: the cluster goes on: %v", x.j, nanos)
		}
	}
}

// TestRankDies checks that the measurement ends when a rank dies, even while other ranks are waiting for it.
func TestRankDies(t *testing.T) {
	c := aCluster(t, 3)
	if _, err := c.measure(t.Context(), binomial(8, 1)); err != nil {
		t.Fatal(err)
	}
	if err := c.ranks[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.measure(t.Context(), binomial(8, maxIterations)); err == nil ||
		!strings.Contains(err.Error(), "rank 1 ends: ") {
		t.Error(err)
	}
}

// TestTimeOfAJob checks that a job that exceeds its deadline ends the ranks.
func TestTimeOfAJob(t *testing.T) {
	c := aCluster(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.measure(ctx, binomial(8, 1)); err == nil {
		t.Error("no error")
	}
}

func TestNoCluster(t *testing.T) {
	if _, err := startCluster(t.Context(), filepath.Join(t.TempDir(), "none"), "udp", 2, t.Output()); !errors.Is(err,
		os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := start(exec.Command("/no/such/program")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	_, tn, all := pretend(t, Options{Quick: true}, byFormula)
	bad := errors.New("no memory")
	tn.launch = func(context.Context, string, int) (measurer, error) { return nil, bad }
	if _, err := tn.run(t.Context(), t.Context(), all); !errors.Is(err, bad) || err.Error() != "shm: no memory" {
		t.Error(err)
	}
}

// TestRankMistakes checks the errors that a rank returns for invalid arguments.
func TestRankMistakes(t *testing.T) {
	for args, says := range map[string]string{"-x": "-x", "-config /does/not/exist": "no such file"} {
		err := RunRank(t.Context(), strings.Fields(args), strings.NewReader(""), &strings.Builder{})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestOrphan checks that a rank exits when its parent process does, even during a job.
func TestOrphan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := bench.Configure(file, "extended", "udp", "", 2); err != nil {
		t.Fatal(err)
	}
	// The other rank is not running, so the job never completes.
	in := `{"collective": "bcast", "by": "binomial", "bytes": 8, "iterations": 1}`
	if err := RunRank(t.Context(), []string{"-config", file, "-rank", "1"}, strings.NewReader(in),
		&strings.Builder{}); err != nil {
		t.Error(err)
	}
}

// TestVerify checks that a wrong word is found at every position, for every collective.
func TestVerify(t *testing.T) {
	devices, err := node.StartLocal(1, protocol.Extended)
	if err != nil {
		t.Fatal(err)
	}
	world, err := mpi.New(devices[0])
	if err != nil {
		t.Fatal(err)
	}
	defer world.Finalize(t.Context())
	const words = 5
	for of := coll.Bcast; of < coll.Exscan; of++ { // rank 0 receives no result from Exscan
		w := worker{comm: world}
		if err := w.prepare(of, words)(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := w.verify(of, words); err != nil {
			t.Errorf("%v: %v", of, err)
		}
		for i := range words {
			w.recv[i]++
			if err := w.verify(of, words); err == nil || !strings.HasPrefix(err.Error(), "word ") {
				t.Errorf("%v: a wrong word %d: %v", of, i, err)
			}
			w.recv[i]--
		}
	}
}
