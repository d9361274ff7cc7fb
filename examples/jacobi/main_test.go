package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
)

func TestJacobi(t *testing.T) {
	for ranks := 1; ranks <= 5; ranks++ {
		for _, args := range []string{"", "-datatype float", "-profile extended", "-words 10 -profile extended -datatype float"} {
			var got struct {
				Right  bool
				Result result
			}
			args += fmt.Sprintf(" -json -size 30 -iterations 4 -ranks %d", ranks)
			o := demotest.Run(t, info, new(program), strings.Fields(args)...)
			o.JSON(t, &got)
			r := got.Result
			if o.Code != 0 || !got.Right || r.Size != 30 || r.Iterations != 4 || r.Workers != ranks-1 || r.Parallel <= 0 || r.WrongCells != 0 {
				t.Errorf("%s: %d %+v", args, o.Code, got)
			}
			// By hand, the cell in the corner: 64, 80, 92, 98.
			if len(r.Cells) != 4 || r.Cells[0] != (cell{1, 1, 98}) || r.Cells[3].Line != 8 {
				t.Errorf("%s: %+v", args, r.Cells)
			}
			if want := strings.Contains(args, "float"); want != (r.Datatype == "float") {
				t.Errorf("%s: cells of %s", args, r.Datatype)
			}
		}
	}
}

func TestTable(t *testing.T) {
	demotest.Run(t, info, new(program), "-size", "16", "-iterations", "1", "-ranks", "2").Right(t,
		"16 x 16 cells of int, 1 iteration, 1 worker\n", "    1       1         64\n    2       2          0\n", "0 of 256 cells differ\n")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-size 2", "-size 2"},
		{"-size 16385", "-size 16385"},
		{"-iterations 0", "-iterations 0"},
		{"-words -1", "-words -1"},
		{"-lines -1", "-lines -1"},
		{"-lines 63 -size 256", "4 workers"},
		{"-datatype double", "double"},
	} {
		demotest.Run(t, info, new(program), strings.Fields(c.args)...).Refused(t, c.says)
	}
}

func TestStandins(t *testing.T) {
	t.Run("attached", func(t *testing.T) {
		const worker = "run: standin, kernel: jacobi"
		demotest.Start(t, "run: host", worker, worker, worker, worker).Attach(t)
		demotest.Run(t, info, new(program), "-size", "512", "-iterations", "2").Right(t, "5 ranks", "512 x 512 cells of int", "0 of 262144 cells differ")
	})
	t.Run("in process, with options", func(t *testing.T) {
		const worker = "run: standin, kernel: jacobi, kernel_options: {columns: 21, lines: 11, words: 8, datatype: float}"
		demotest.Start(t, "peer: software", worker, worker).InProcess(t, 0)
		demotest.Run(t, info, new(program), "-size", "21", "-lines", "11", "-words", "8", "-datatype", "float").Right(t, "0 of 441 cells differ")
	})
}

func TestWrong(t *testing.T) {
	r := result{Size: 4}
	if w := r.Wrong(); w != "" {
		t.Error(w)
	}
	r.WrongCells = 3
	if w, want := r.Wrong(), "3 of 16 cells differ from the serial computation"; w != want {
		t.Errorf("%q, want %q", w, want)
	}
}
