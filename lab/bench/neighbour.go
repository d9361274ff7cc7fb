package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// neighbourCommand is the argument that, after RankCommand, starts the neighbour: a process that disturbs a measurement
// by using the processors. The next argument is a seed.
const neighbourCommand = "neighbour"

// The neighbour uses each processor in bursts that last between minBurst and maxBurst, for 1 / neighbourShare of the
// time on average.
const (
	minBurst       = time.Millisecond
	maxBurst       = 20 * time.Millisecond
	neighbourShare = 5
	// maxBurstDelay is the maximum delay of a burst. If a burst is later, it and all further ones are postponed, so that
	// the neighbour pauses between bursts even among busy processes.
	maxBurstDelay = 100 * time.Millisecond
)

// bursts generates the times at which a neighbour uses a processor. The sequence depends only on the seed.
type bursts struct {
	random *rand.Rand
	end    time.Duration
}

func newBursts(seed, processor uint64) *bursts {
	return &bursts{random: rand.New(rand.NewPCG(seed, processor))}
}

// next returns when the next burst starts, relative to the beginning of the sequence, and how much processor time it
// takes.
func (b *bursts) next() (start, length time.Duration) {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(b.random.Int64N(int64(most-least)+1))
	}
	const pauses = neighbourShare - 1 // in units of the mean burst
	start = b.end + between(pauses*minBurst, pauses*maxBurst)
	length = between(minBurst, maxBurst)
	b.end = start + length
	return start, length
}

// runNeighbour uses all processors in bursts until ctx is done.
func runNeighbour(ctx context.Context, seed string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return fmt.Errorf("the seed of the neighbour: %w", err)
	}
	errs := make([]error, runtime.NumCPU())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
			if errs[i] = stayOn(i); errs[i] == nil {
				disturb(ctx, newBursts(n, uint64(i)))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// disturb uses this thread's processor in bursts until ctx is done.
func disturb(ctx context.Context, b *bursts) {
	for began := time.Now(); ctx.Err() == nil; {
		at, length := b.next()
		wait := at - time.Since(began)
		if wait < -maxBurstDelay {
			began = began.Add(-wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		for used := threadTime(); threadTime()-used < length; {
		}
	}
}

// startNeighbour starts a process that disturbs the measurement. The function stop ends it, and returns an error if it
// did not run all the time.
func startNeighbour(ctx context.Context, self string, seed int) (stop func() error, err error) {
	cmd := command(ctx, self, RankCommand, neighbourCommand, strconv.Itoa(seed))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		stdin.Close() // stops it
		return cmd.wait()
	}, nil
}
