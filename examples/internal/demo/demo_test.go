package demo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
	"github.com/zrlmpi/zrlmpid/mpi"
)

var info = demo.Info{Name: "sum", Summary: "adds up ranks", Ranks: 3}

// sum is an example: all ranks send their numbers to rank 0.
type sum struct {
	plus int
	// fail fails on this rank.
	fail int
}

func (s *sum) Flags(f *flag.FlagSet) { f.IntVar(&s.plus, "plus", 0, "add a mistake") }

func (s *sum) Check(ranks int) error {
	if ranks > 9 {
		return fmt.Errorf("%d ranks are too many", ranks)
	}
	return nil
}

func (s *sum) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	if s.fail > 0 && world.Rank() == s.fail {
		return nil, errors.New("out of order")
	}
	number := []int32{int32(world.Rank())}
	if world.Rank() != 0 {
		return nil, mpi.Send(ctx, world, number, 0, 0)
	}
	total := s.plus
	for rank := 1; rank < world.Size(); rank++ {
		if _, err := mpi.Recv(ctx, world, number, rank, 0); err != nil {
			return nil, err
		}
		total += int(number[0])
	}
	return result{total, world.Size() * (world.Size() - 1) / 2}, nil
}

type result struct{ Sum, Want int }

func (r result) Table(w io.Writer) { fmt.Fprintf(w, "SUM %d\n", r.Sum) }

func (r result) Wrong() string {
	if r.Sum == r.Want {
		return ""
	}
	return fmt.Sprintf("%d is not %d", r.Sum, r.Want)
}

func TestTable(t *testing.T) {
	demotest.Run(t, info, new(sum)).Right(t, "sum: 3 ranks, profile cloudfpga, in this process\nSUM 3\n")
	demotest.Run(t, info, new(sum), "-ranks", "1").Right(t, "sum: 1 rank, in this process\nSUM 0\n")
	demotest.Run(t, info, new(sum), "--ranks=9", "--profile=extended").Right(t, "sum: 9 ranks, profile extended, in this process\nSUM 36\n")
	demotest.Run(t, info, new(sum), "-profile", "v0.9").Right(t, "profile v0.9")
}

// sums is sum of several clusters: the result is that of all.
type sums struct {
	sum
	ranks []int
}

func (s *sums) Clusters(ranks int) []int { return []int{2, ranks, 1} }

func (s *sums) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	r, err := s.sum.Run(ctx, world)
	if err == nil && world.Rank() == 0 {
		s.ranks = append(s.ranks, world.Size())
		r = result{len(s.ranks), len(s.ranks)}
	}
	return r, err
}

// A series is run by one cluster after another, and the last result counts.
func TestSeries(t *testing.T) {
	s := new(sums)
	demotest.Run(t, info, s, "-ranks", "4").Right(t, "sum: ", "SUM 3\n")
	if fmt.Sprint(s.ranks) != "[2 4 1]" {
		t.Errorf("clusters of %v ranks", s.ranks)
	}
	s = &sums{sum: sum{fail: 3}}
	if o := demotest.Run(t, info, s, "-ranks", "4"); o.Code != 1 || o.Stderr != "sum: out of order\n" || fmt.Sprint(s.ranks) != "[2]" {
		t.Errorf("%+v after %v", o, s.ranks)
	}
	// Not where there is a cluster already.
	demotest.Start(t, "peer: software", "run: standin, kernel: source, kernel_options: {words: 1, count: 1}").InProcess(t, 0)
	s = new(sums)
	demotest.Run(t, info, s).Right(t, "SUM 1\n")
	if fmt.Sprint(s.ranks) != "[2]" {
		t.Errorf("clusters of %v ranks", s.ranks)
	}
}

type report struct {
	Example, Where string
	Rank, Ranks    int
	Profiles       []string
	Right          *bool
	Result         *result
	Error          string
	Exit           int
}

func TestJSON(t *testing.T) {
	var r report
	o := demotest.Run(t, info, new(sum), "--json", "-ranks", "4")
	o.JSON(t, &r)
	if o.Code != 0 || r.Example != "sum" || r.Ranks != 4 || r.Where != "in this process" || fmt.Sprint(r.Profiles) != "[cloudfpga]" ||
		r.Right == nil || !*r.Right || *r.Result != (result{6, 6}) {
		t.Errorf("%d %+v", o.Code, r)
	}
}

// A result that is wrong is shown, and the exit code says so.
func TestWrong(t *testing.T) {
	o := demotest.Run(t, info, new(sum), "-plus", "1")
	if o.Code != 1 || !strings.Contains(o.Stdout, "SUM 4") || o.Stderr != "sum: the result is wrong: 4 is not 3\n" {
		t.Errorf("%+v", o)
	}
	o = demotest.Run(t, info, new(sum), "-plus", "1", "-json")
	var r report
	o.JSON(t, &r)
	if o.Code != 1 || r.Right == nil || *r.Right || *r.Result != (result{4, 3}) {
		t.Errorf("%d %+v", o.Code, r)
	}
}

// One rank that fails ends all, and its error is the one that is told.
func TestFailure(t *testing.T) {
	for _, profile := range []string{"cloudfpga", "extended"} {
		o := demotest.Run(t, info, &sum{fail: 2}, "-profile", profile)
		if o.Code != 1 || o.Stdout != "" || o.Stderr != "sum: out of order\n" {
			t.Errorf("%+v", o)
		}
	}
	var r report
	o := demotest.Run(t, info, &sum{fail: 2}, "-json")
	o.JSON(t, &r)
	if o.Code != 1 || r.Error != "out of order" || r.Exit != 1 || r.Right != nil {
		t.Errorf("%d %+v", o.Code, r)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args, says string
	}{
		{"-ranks 0", "-ranks 0"},
		{"-ranks -3", "-ranks -3"},
		{"-ranks 10", "10 ranks are too many"},
		{"-ranks two", "two"},
		{"-profile none", "none"},
		{"-timeout 0s", "-timeout 0s"},
		{"-minus 1", "minus"},
		{"more", `"more" is no flag`},
	} {
		demotest.Run(t, info, new(sum), strings.Fields(c.args)...).Refused(t, c.says)
	}
	var r report
	o := demotest.Run(t, info, new(sum), "-json", "-ranks", "0")
	o.JSON(t, &r)
	if o.Code != 2 || r.Exit != 2 || !strings.Contains(r.Error, "-ranks 0") {
		t.Errorf("%+v", o)
	}
	o = demotest.Run(t, info, new(sum), "-help")
	for _, text := range []string{"adds up ranks", "-plus", "-json", "ZRLMPI_SOCKET", "Exit codes"} {
		if o.Code != 0 || !strings.Contains(o.Stderr, text) {
			t.Errorf("%q is not in the help: %+v", text, o)
		}
	}
}

// The end of the time is told, with who waits for whom.
func TestTimeout(t *testing.T) {
	c := demotest.Start(t, "peer: software", "run: standin, kernel: sink")
	c.InProcess(t, 0)
	o := demotest.Run(t, info, new(sum), "-timeout", "50ms")
	if o.Code != 1 || !strings.Contains(o.Stderr, "-timeout") || !strings.Contains(o.Stderr, "rank 0 waits for") {
		t.Errorf("%+v", o)
	}
}

// fullDisk takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullDisk: an example whose result cannot be printed has failed.
func TestFullDisk(t *testing.T) {
	for _, args := range [][]string{nil, {"-json"}} {
		var stderr strings.Builder
		if code := demo.Run(t.Context(), info, new(sum), args, fullDisk{}, &stderr); code != 1 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d, %q", args, code, stderr.String())
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupted"))
	var stderr strings.Builder
	if code := demo.Run(ctx, info, new(sum), nil, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("%d %s", code, stderr.String())
	}
}

func TestEnvironment(t *testing.T) {
	c := demotest.Start(t, "run: host", "peer: software", "run: host")
	t.Run("as another rank", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		c.Attach(t)
		t.Setenv(mpi.EnvRank, "0")
		root, err := mpi.Init(ctx)
		if err != nil {
			t.Fatal(err)
		}
		received := make(chan error, 1)
		go func() {
			var errs []error
			for _, rank := range []int{2, 1} { // as they are run below
				_, err := mpi.Recv(ctx, root, make([]int32, 1), rank, 0)
				errs = append(errs, err)
			}
			received <- errors.Join(errs...)
		}()
		t.Setenv(mpi.EnvRank, "2")
		demotest.Run(t, info, new(sum)).Right(t, "sum: 3 ranks, profile cloudfpga, attached to "+c.Socket+"\nrank 2 has done its part")
		t.Setenv(mpi.EnvSocket, "")
		c.InProcess(t, 1)
		var r report
		o := demotest.Run(t, info, new(sum), "-json")
		o.JSON(t, &r)
		if o.Code != 0 || r.Rank != 1 || r.Ranks != 3 || r.Right != nil || r.Result != nil || r.Where != "as "+c.Config+" says" {
			t.Errorf("%+v", o)
		}
		if err := errors.Join(<-received, root.Finalize(ctx)); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags of a cluster that is there already", func(t *testing.T) {
		c.Attach(t)
		demotest.Run(t, info, new(sum), "-ranks", "2").Refused(t, "-ranks is for")
		demotest.Run(t, info, new(sum), "-profile", "extended").Refused(t, "-profile is for")
	})
	t.Run("no daemon", func(t *testing.T) {
		t.Setenv(mpi.EnvSocket, c.Socket+"nowhere")
		if o := demotest.Run(t, info, new(sum)); o.Code != 1 || !strings.Contains(o.Stderr, "nowhere") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("a cluster that does not fit", func(t *testing.T) {
		c := demotest.Start(t, strings.Split("run: host;"+strings.Repeat("peer: software;", 8)+"peer: software", ";")...)
		c.Attach(t)
		demotest.Run(t, info, new(sum)).Refused(t, "10 ranks are too many")
	})
}

func TestList(t *testing.T) {
	var l demo.List
	if err := l.Set("1,346,-7"); err != nil || l.String() != "1,346,-7" || len(l) != 3 {
		t.Errorf("%v %v", l, err)
	}
	for _, s := range []string{"", "1,", "1,x", "1.5", "1 2"} {
		if err := new(demo.List).Set(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestTimesOf(t *testing.T) {
	us := time.Microsecond
	for _, c := range []struct {
		times []time.Duration
		want  demo.Times
	}{
		{[]time.Duration{5 * us}, demo.Times{Min: 5, Median: 5, Max: 5}},
		{[]time.Duration{9 * us, 1 * us, 2*us + 500}, demo.Times{Min: 1, Median: 2.5, Max: 9}},
		{[]time.Duration{4 * us, 1 * us, 9 * us, 2 * us}, demo.Times{Min: 1, Median: 3, Max: 9}},
	} {
		if got := demo.TimesOf(c.times); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
