package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/apps/backsub"
	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
	"github.com/zrlmpi/zrlmpid/examples/internal/scaling"
	"github.com/zrlmpi/zrlmpid/mpi"
)

type report struct {
	Right  bool
	Ranks  int
	Result scaling.Result
}

func TestBacksub(t *testing.T) {
	for _, ranks := range []int{1, 2, 5, 8} {
		for _, args := range []string{"", "-profile extended", "-datatype double", "-datatype double -profile extended -pace 1us"} {
			var got report
			args += fmt.Sprintf(" -json -sizes 1,7,30 -repeat 2 -ranks %d", ranks)
			o := demotest.Run(t, info, newProgram(), strings.Fields(args)...)
			o.JSON(t, &got)
			r := got.Result
			clusters := map[int]int{1: 1, 2: 1, 5: 3, 8: 4}[ranks]
			if o.Code != 0 || !got.Right || got.Ranks != ranks || r.Numbers != clusters*2*(1+7+30) || r.Repeat != 2 || r.Cores < 1 {
				t.Errorf("%s: %d %+v", args, o.Code, got)
			}
			if last := len(r.Processors) - 1; r.Processors[0] != 1 || r.Processors[last] != ranks || len(r.Sizes) != 3 || r.Sizes[2].Size != 30 || r.Sizes[2].Times[last].Millis <= 0 {
				t.Errorf("%s: %+v", args, r)
			}
			if strings.Contains(args, "double") != (r.Datatype == scaling.Double) || strings.Contains(args, "-pace") != (r.Pace == 1) {
				t.Errorf("%s: %+v", args, r)
			}
		}
	}
}

func TestTable(t *testing.T) {
	o := demotest.Run(t, info, newProgram(), "-sizes", "100,200", "-repeat", "1", "-paper")
	o.Right(t, "backsub: 8 ranks, profile cloudfpga, in this process\nback substitution in triangular matrices of float; medians of 1 run; this machine has ",
		"| paper, table V\n", "|     46     30     20     18     20\n", "|          1.58   2.47   2.90   2.61\n", "Dealing the rows out took up to ", "0 of 1200 numbers differ")
	o = demotest.Run(t, info, newProgram(), "-sizes", "50", "-repeat", "1", "-ranks", "2")
	o.Right(t, "TIME (ms) by processors\n                     1        2\n      50 x 50")
	if strings.Contains(o.Stdout, "paper,") {
		t.Errorf("the paper, unasked:\n%s", o.Stdout)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-sizes 0", "-sizes 0"},
		{"-sizes 16385", "1 to 16384"},
		{"-sizes many", "many"},
		{"-repeat 0", "-repeat 0"},
		{"-pace 2ms", "-pace 2ms"},
		{"-datatype int", "int"},
		{"-ranks 0", "-ranks 0"},
	} {
		demotest.Run(t, info, newProgram(), strings.Fields(c.args)...).Refused(t, c.says)
	}
}

func TestStandins(t *testing.T) {
	t.Run("attached", func(t *testing.T) {
		const worker = "run: standin, kernel: backsub"
		demotest.Start(t, "run: host", worker, worker, worker, worker, worker, worker, worker).Attach(t)
		demotest.Run(t, info, newProgram(), "-sizes", "100,150", "-repeat", "2").Right(t, "8 ranks, profile cloudfpga, attached to", " 1        8\n", "0 of 500 numbers differ")
	})
	t.Run("in process, with options", func(t *testing.T) {
		const worker = "run: standin, kernel: backsub, kernel_options: {words: 77}"
		demotest.Start(t, "peer: software", worker, worker).InProcess(t, 0)
		demotest.Run(t, info, newProgram(), "-sizes", "20,5", "-repeat", "1", "-pace", "1us").Right(t, "0 of 25 numbers differ")
	})
}

// Two hosts, which talk to each other by the extended profile, and two stand-ins: the
// hosts' collective calls go as those of FPGAs.
func TestHostsAndStandins(t *testing.T) {
	const host, worker = "run: host, link: {profile: extended}", "run: standin, kernel: backsub"
	demotest.Start(t, host, host, worker, worker).Attach(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	t.Setenv(mpi.EnvRank, "1")
	second, err := mpi.Init(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for range 2 {
			if err := backsub.Work[float32](ctx, second, backsub.Options{Words: 1000}); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	t.Setenv(mpi.EnvRank, "0")
	demotest.Run(t, info, newProgram(), "-sizes", "37,10", "-repeat", "1").Right(t, "4 ranks, profile cloudfpga and extended, attached to", "0 of 47 numbers differ")
	if err := errors.Join(<-ended, second.Finalize(ctx)); err != nil {
		t.Error(err)
	}
}
