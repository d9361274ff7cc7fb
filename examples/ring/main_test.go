package main

import (
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
)

func TestRing(t *testing.T) {
	for ranks := 1; ranks <= 5; ranks++ {
		for _, profile := range []string{"cloudfpga", "extended"} {
			var got struct {
				Right  bool
				Result result
			}
			o := demotest.Run(t, info, newRing(), "-json", "-ranks", fmt.Sprint(ranks), "-profile", profile, "-words", "1,1000", "-rounds", "4")
			o.JSON(t, &got)
			if o.Code != 0 || !got.Right || len(got.Result.Series) != 2 {
				t.Fatalf("%d %+v", o.Code, got)
			}
			for i, s := range got.Result.Series {
				if s.Words != []int{1, 1000}[i] || s.Verified != 4 || s.Min <= 0 || s.Hop*float64(ranks) > s.Max*1.001 {
					t.Errorf("%+v", s)
				}
			}
		}
	}
	demotest.Run(t, info, newRing(), "-rounds", "2").Right(t, "  65536 ", "  2/2\n")
}

func TestUsage(t *testing.T) {
	demotest.Run(t, info, newRing(), "-rounds", "0").Refused(t, "-rounds 0")
	demotest.Run(t, info, newRing(), "-words", "-1").Refused(t, "-words -1")
}

// Kernel ring has the part of the other ranks.
func TestStandins(t *testing.T) {
	c := demotest.Start(t, "peer: software", "run: standin, kernel: ring", "run: standin, kernel: ring", "run: standin, kernel: ring")
	c.InProcess(t, 0)
	demotest.Run(t, info, newRing(), "-rounds", "5").Right(t, "4 ranks", "  5/5\n")
}

// A message that comes back as another one is noticed. Here the last rank sends
// words of its own.
func TestNoticesDamage(t *testing.T) {
	demotest.Start(t, "run: host", "run: standin, kernel: sink", "run: standin, kernel: source, kernel_options: {words: 1}").Attach(t)
	o := demotest.Run(t, info, newRing(), "-words", "2", "-rounds", "3")
	if want := "ring: the result is wrong: 0 of 3 messages of 2 words came round as they were sent\n"; o.Code != 1 || o.Stderr != want {
		t.Errorf("%+v", o)
	}
}
