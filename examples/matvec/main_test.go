package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
	"github.com/zrlmpi/zrlmpid/examples/internal/scaling"
)

type report struct {
	Right  bool
	Ranks  int
	Result scaling.Result
}

func TestMatvec(t *testing.T) {
	for _, ranks := range []int{1, 2, 5, 8} {
		for _, args := range []string{"", "-rows 4 -profile extended", "-datatype double", "-datatype double -profile extended -pace 1us"} {
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
	o := demotest.Run(t, info, newProgram(), "-sizes", "50,100", "-repeat", "1", "-paper")
	o.Right(t, "matvec: 8 ranks, profile cloudfpga, in this process\nproducts of a matrix and a vector of float; medians of 1 run; this machine has ",
		"| paper, table II\n", "|     22     12      9      7      6\n", "|          1.87   2.93   3.52   3.83\n", "0 of 600 numbers differ")
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
		{"-rows 0", "-rows 0"},
		{"-rows 16385", "-rows 16385"},
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
		const worker = "run: standin, kernel: matvec"
		demotest.Start(t, "run: host", worker, worker, worker, worker, worker, worker, worker).Attach(t)
		demotest.Run(t, info, newProgram(), "-repeat", "2").Right(t, "8 ranks, profile cloudfpga, attached to", " 1        8\n", "0 of 2100 numbers differ")
	})
	t.Run("in process, with options", func(t *testing.T) {
		const worker = "run: standin, kernel: matvec, kernel_options: {words: 60}"
		demotest.Start(t, "peer: software", worker, worker).InProcess(t, 0)
		demotest.Run(t, info, newProgram(), "-sizes", "20,5", "-rows", "3", "-repeat", "1", "-pace", "1us").Right(t, "0 of 25 numbers differ")
	})
}
