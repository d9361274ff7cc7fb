package main

import (
	"context"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// TestFindsChangedMessage checks the error for a message that comes back changed.
func TestFindsChangedMessage(t *testing.T) {
	for name, change := range map[string]func(ball []int32) []int32{
		"other words": func(ball []int32) []int32 { ball[4]++; return ball },
		"fewer words": func(ball []int32) []int32 { return ball[:4] },
	} {
		err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
			if world.Rank() == 0 {
				return pingpong(ctx, world)
			}
			for {
				ball := make([]int32, 346)
				status, err := mpi.Recv(ctx, world, ball, 0, 0)
				if err != nil {
					return err
				}
				ball = ball[:mpi.Count[int32](status)]
				if len(ball) == 346 && ball[0] == 2 {
					ball = change(ball)
				}
				if err := mpi.Send(ctx, world, ball, 0, 0); err != nil {
					return err
				}
			}
		})
		if want := "rank 0: message 1 of 346 words came back from rank 1 changed"; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
