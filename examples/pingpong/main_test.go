package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/examples/internal/demotest"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

func TestPingpong(t *testing.T) {
	for ranks := 2; ranks <= 5; ranks++ {
		for _, profile := range []string{"cloudfpga", "extended"} {
			var got struct {
				Right  bool
				Result result
			}
			o := demotest.Run(t, info, newPingpong(), "-json", "-ranks", fmt.Sprint(ranks), "-profile", profile, "-words", "1,347,1000", "-count", "3")
			o.JSON(t, &got)
			if o.Code != 0 || !got.Right || len(got.Result.Series) != 3*(ranks-1) {
				t.Fatalf("%d %+v", o.Code, got)
			}
			for i, s := range got.Result.Series {
				if s.Rank != 1+i/3 || s.Words != []int{1, 347, 1000}[i%3] || s.Verified != 3 || s.Min <= 0 || s.Min > s.Median || s.Median > s.Max || s.MBps <= 0 {
					t.Errorf("%+v", s)
				}
			}
		}
	}
	demotest.Run(t, info, newPingpong(), "-count", "2").Right(t, "   1   65536 ", "  2/2\n")
}

func TestUsage(t *testing.T) {
	demotest.Run(t, info, newPingpong(), "-ranks", "1").Refused(t, "two ranks or more")
	demotest.Run(t, info, newPingpong(), "-count", "0").Refused(t, "-count 0")
	demotest.Run(t, info, newPingpong(), "-words", "3,0").Refused(t, "-words 0")
	demotest.Run(t, info, newPingpong(), "-words", "67108865").Refused(t, "-words 67108865")
	demotest.Run(t, info, newPingpong(), "-words", "many").Refused(t, "many")
}

// Kernel echo has the part of the other ranks.
func TestStandins(t *testing.T) {
	demotest.Start(t, "run: host", "run: standin, kernel: echo", "run: standin, kernel: echo").Attach(t)
	demotest.Run(t, info, newPingpong(), "-count", "2").Right(t, "3 ranks", "   2   65536 ")
}

// A message that comes back as another one is noticed.
func TestNoticesDamage(t *testing.T) {
	for name, damage := range map[string]func(ball []int32) []int32{
		"other words": func(ball []int32) []int32 { ball[4]++; return ball },
		"fewer words": func(ball []int32) []int32 { return ball[:4] },
	} {
		var worlds []*mpi.Comm
		for _, d := range mpitest.New(2, mpitest.Options{}) {
			world, err := mpi.New(d)
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, world)
		}
		pong := make(chan error, 1)
		go func() {
			for round := range 3 {
				ball := make([]int32, 5)
				if _, err := mpi.Recv(t.Context(), worlds[1], ball, 0, tag); err != nil {
					pong <- err
					return
				}
				if round == 1 {
					ball = damage(ball)
				}
				if err := mpi.Send(t.Context(), worlds[1], ball, 0, tag); err != nil {
					pong <- err
					return
				}
			}
			pong <- nil
		}()
		got, err := (&pingpong{words: demo.List{5}, count: 3}).Run(t.Context(), worlds[0])
		if err = errors.Join(err, <-pong); err != nil {
			t.Fatal(err)
		}
		if w, want := got.Wrong(), "2 of 3 messages of 5 words came back from rank 1 as they were sent"; w != want {
			t.Errorf("%s: %q, want %q", name, w, want)
		}
	}
}
