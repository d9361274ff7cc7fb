package scaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestClusters(t *testing.T) {
	for ranks, want := range map[int][]int{
		1: {1}, 2: {2}, 3: {2, 3}, 4: {2, 4}, 5: {2, 4, 5}, 8: {2, 4, 6, 8}, 17: {2, 4, 6, 8, 17},
	} {
		if got := new(Options).Clusters(ranks); !reflect.DeepEqual(got, want) {
			t.Errorf("%d ranks: %v, want %v", ranks, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", ""},
		{"-sizes 1,100 -repeat 10000 -pace 1ms -datatype double -paper", ""},
		{"-sizes 0", "-sizes 0: 1 to 100"},
		{"-sizes 7,101", "-sizes 101: 1 to 100"},
		{"-repeat 0", "-repeat 0: 1 to 10000"},
		{"-repeat 10001", "-repeat 10001"},
		{"-pace -1ns", "-pace -1ns: 0s to 1ms"},
		{"-pace 1001us", "-pace 1.001ms"},
		{"-datatype int", `unknown datatype "int": it is float or double`},
	} {
		var o Options
		f := flag.NewFlagSet("", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		o.Declare(f, []int{5, 6})
		err := f.Parse(strings.Fields(c.args))
		if err == nil {
			err = o.Check(100)
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.args, err, c.says)
		}
	}
}

// study has rank 0 of clusters of these sizes measure problems that take as long as
// they are large, in microseconds, and a fourth of that with others. The last number of
// a result may be wrong.
func study(t *testing.T, s *Study, wrong float64, clusters ...int) *Result {
	t.Helper()
	var r *Result
	for _, ranks := range clusters {
		result, err := s.Run(0, func(size int) error {
			calls := 0
			solve := func(run Run, last float64) func() ([]float64, Run, error) {
				return func() ([]float64, Run, error) { calls++; return []float64{1, math.Inf(1), last}, run, nil }
			}
			long := time.Duration(size) * time.Microsecond
			err := Measure(s, size, ranks, solve(Run{Time: long}, 3), solve(Run{long / 4, 2 * long}, 3+wrong))
			if first := ranks == clusters[0]; calls != s.Repeat+1 && (!first || calls != 2*s.Repeat+1) {
				t.Errorf("%d calls for %d runs", calls, s.Repeat)
			}
			return err
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r = result.(*Result)
	}
	return r
}

func TestMeasure(t *testing.T) {
	s := &Study{Options: Options{Sizes: []int{400, 1000}, Repeat: 3, Datatype: Double, Pace: 1500}}
	r := study(t, s, 0, 2, 5)
	if r.Cores < 1 || r.Repeat != 3 || r.Datatype != Double || r.Pace != 1.5 || r.Numbers != 2*2*3*3 || r.Wrong() != "" || r.Paper != nil {
		t.Errorf("%+v", r)
	}
	want := Times{[]int{1, 2, 5}, []Row{
		{400, []Time{{1, 0.4, 0.4, 0.4, 0, 1, 1}, {2, 0.1, 0.1, 0.1, 0.8, 4, 2}, {5, 0.1, 0.1, 0.1, 0.8, 4, 0.8}}},
		{1000, []Time{{1, 1, 1, 1, 0, 1, 1}, {2, 0.25, 0.25, 0.25, 2, 4, 2}, {5, 0.25, 0.25, 0.25, 2, 4, 0.8}}},
	}}
	if !reflect.DeepEqual(r.Times, want) {
		t.Errorf("%+v\nwant\n%+v", r.Times, want)
	}
}

// One rank is compared, and is the one processor that all are measured by.
func TestMeasureOne(t *testing.T) {
	r := study(t, &Study{Options: Options{Sizes: []int{4}, Repeat: 2}}, 0, 1)
	if r.Numbers != 6 || len(r.Processors) != 1 || len(r.Sizes[0].Times) != 1 || r.Sizes[0].Times[0].Speedup != 1 {
		t.Errorf("%+v", r)
	}
}

// A clock that stands still is no reason for an infinite speed-up, which JSON does not
// know.
func TestMeasureCoarse(t *testing.T) {
	r := study(t, &Study{Options: Options{Sizes: []int{0}, Repeat: 1}}, 0, 2)
	if got := r.Sizes[0].Times[1]; got.Millis != 1e-6 || got.Speedup != 1 {
		t.Errorf("%+v", got)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestMeasureWrong(t *testing.T) {
	for _, wrong := range []float64{math.Inf(1), math.NaN(), 1} {
		r := study(t, &Study{Options: Options{Sizes: []int{4}, Repeat: 2}}, wrong, 2)
		if w := "2 of 6 numbers differ from those of one processor"; r.Wrong() != w {
			t.Errorf("%q, want %q", r.Wrong(), w)
		}
	}
	var s Study
	compare(&s, []float32{0, float32(math.NaN())}, []float32{float32(math.Copysign(0, -1)), float32(math.NaN())})
	if s.numbers != 2 || s.wrong != 1 {
		t.Errorf("%d of %d: a zero of the other sign differs, the same NaN does not", s.wrong, s.numbers)
	}
}

func TestFailures(t *testing.T) {
	failed := errors.New("failed")
	s := Study{Options: Options{Sizes: []int{1, 2}, Repeat: 2}}
	if r, err := s.Run(0, func(int) error { return failed }, nil); err != failed || r != nil {
		t.Errorf("%v, %v", r, err)
	}
	works := 0
	work := func() error {
		if works++; works == 3 {
			return failed
		}
		return nil
	}
	if r, err := s.Run(1, nil, work); err != failed || r != nil || works != 3 {
		t.Errorf("%v, %v after %d", r, err, works)
	}
	if r, err := s.Run(1, nil, work); err != nil || r != nil || works != 3+4 {
		t.Errorf("%v, %v after %d", r, err, works)
	}
	good := func() ([]float32, Run, error) { return nil, Run{}, nil }
	bad := func() ([]float32, Run, error) { return nil, Run{}, failed }
	if err := Measure(&s, 1, 2, bad, good); err != failed {
		t.Error(err)
	}
	if err := Measure(&s, 1, 2, good, bad); err != failed {
		t.Error(err)
	}
}

var paper = NewPaper("IX", []int{400, 50}, [][]float64{{1000, 500, 300, 250, 200}, {8, 8, 8, 8, 8}})

func TestTable(t *testing.T) {
	s := &Study{Options: Options{Sizes: []int{400, 1000}, Repeat: 1, Datatype: Float, Paper: true, Pace: 2 * time.Microsecond}, Title: "sums", Table: paper}
	r := study(t, s, 0, 2, 5)
	r.Cores = 3
	var b bytes.Buffer
	r.Table(&b)
	want := `sums of float; medians of 1 run; this machine has 3 cores
paced: a multiplication with its addition takes 2 us, which ranks need no cores for

TIME (ms) by processors                  | paper, table IX
                     1        2        5 |      1      2      4      6      8
    400 x 400    0.400    0.100    0.100 |   1000    500    300    250    200
  1000 x 1000     1.00    0.250    0.250 |

SPEED-UP by processors                   | paper, table IX
                              2        5 |             2      4      6      8
    400 x 400              4.00     4.00 |          2.00   3.33   4.00   5.00
  1000 x 1000              4.00     4.00 |

EFFICIENCY by processors                 | paper, table IX
                              2        5 |             2      4      6      8
      average              2.00    0.800 |         0.750  0.542  0.417  0.375
      maximum              2.00    0.800 |          1.00  0.833  0.667  0.625

Dealing the rows out took up to 2.00 ms; it is not in the times.
0 of 12 numbers differ from those of one processor
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

func TestTableOfOne(t *testing.T) {
	r := study(t, &Study{Options: Options{Sizes: []int{40}, Repeat: 2, Datatype: Double}, Title: "sums", Table: paper}, 1, 1)
	r.Cores = 1
	var b bytes.Buffer
	r.Table(&b)
	want := `sums of double; medians of 2 runs; this machine has 1 core

TIME (ms) by processors
                     1
      40 x 40   0.0400

2 of 6 numbers differ from those of one processor
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

// Who is disappointed is told why.
func TestNoSpeedup(t *testing.T) {
	const hint = "\n\nNo speed-up: messages"
	r := &Result{Times: Times{[]int{1, 2}, []Row{{1, []Time{{Processors: 1, Speedup: 1}, {Processors: 2, Millis: 2, Speedup: 0.99}}}}}}
	for _, c := range []struct {
		speedup, pace float64
		hint          bool
	}{{0.99, 0, true}, {1, 0, false}, {0.99, 9, false}} {
		var b bytes.Buffer
		r.Sizes[0].Times[1].Speedup, r.Pace = c.speedup, c.pace
		r.Table(&b)
		if strings.Contains(b.String(), hint) != c.hint {
			t.Errorf("%+v: %s", c, b.String())
		}
	}
}

func TestPaperInJSON(t *testing.T) {
	b, err := json.Marshal(paper)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"table":"IX","processors":[1,2,4,6,8],"sizes":[{"size":400,"times":[{"processors":1,"ms":1000,"speedup":1,"efficiency":1},`
	if !strings.HasPrefix(string(b), want) {
		t.Errorf("%s", b)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00000", 0.000001: "0.00000", 0.00012345: "0.00012", 0.0012345: "0.00123", 0.12345: "0.123", 1: "1.00", 12.345: "12.3",
		123.45: "123", 999.9: "1000", 1234.5: "1234", 1e6: "1000000",
	} {
		if got := digits(v); got != want {
			t.Errorf("digits(%v): %s, want %s", v, got, want)
		}
	}
	if got := fmt.Sprint(whole(2), "|", whole(1669)); got != "2|1669" {
		t.Error(got)
	}
}
