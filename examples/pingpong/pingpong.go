package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/examples/internal/demo"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// tag is upstream's.
const tag = 0

// maxWords bounds a message: 256 MiB, the longest that a rank takes.
const maxWords = 1 << 26

type pingpong struct {
	words demo.List
	count int
}

func newPingpong() *pingpong { return &pingpong{words: demo.List{1, 346, 347, 1000, 65536}} }

// Flags implements demo.Example.
func (p *pingpong) Flags(f *flag.FlagSet) {
	f.Var(&p.words, "words", "lengths of the messages in 32-bit `words`, with commas between them")
	f.IntVar(&p.count, "count", 100, "how many messages of each length")
}

// Check implements demo.Example.
func (p *pingpong) Check(ranks int) error {
	switch {
	case ranks < 2:
		return fmt.Errorf("ping-pong takes two ranks or more, and there is %d", ranks)
	case p.count < 1:
		return fmt.Errorf("-count %d: there is at least one", p.count)
	}
	for _, words := range p.words {
		if words < 1 || words > maxWords {
			return fmt.Errorf("-words %d: a message has 1 to %d words", words, maxWords)
		}
	}
	return nil
}

// Run implements demo.Example.
func (p *pingpong) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	if world.Rank() != 0 {
		return nil, p.pong(ctx, world)
	}
	var all result
	for rank := 1; rank < world.Size(); rank++ {
		for _, words := range p.words {
			s, err := p.ping(ctx, world, rank, words)
			if err != nil {
				return nil, err
			}
			all.Series = append(all.Series, s)
		}
	}
	return &all, nil
}

// ping is the part of rank 0.
func (p *pingpong) ping(ctx context.Context, c *mpi.Comm, rank, words int) (series, error) {
	s := series{Rank: rank, Words: words, Count: p.count}
	ball, back := make([]int32, words), make([]int32, words)
	trips := make([]time.Duration, p.count)
	for i := range trips {
		for j := range ball {
			ball[j] = int32(i<<20 + j) // differs from message to message
		}
		clear(back)
		start := time.Now()
		if err := mpi.Send(ctx, c, ball, rank, tag); err != nil {
			return s, err
		}
		st, err := mpi.Recv(ctx, c, back, rank, tag)
		if err != nil {
			return s, err
		}
		trips[i] = time.Since(start)
		if mpi.Count[int32](st) == words && slices.Equal(ball, back) {
			s.Verified++
		}
	}
	s.Times = demo.TimesOf(trips)
	s.MBps = 2 * 4 * float64(words) / s.Median
	return s, nil
}

// pong is the part of all others.
func (p *pingpong) pong(ctx context.Context, c *mpi.Comm) error {
	for _, words := range p.words {
		ball := make([]int32, words)
		for range p.count {
			if _, err := mpi.Recv(ctx, c, ball, 0, tag); err != nil {
				return err
			}
			if err := mpi.Send(ctx, c, ball, 0, tag); err != nil {
				return err
			}
		}
	}
	return nil
}

type result struct {
	Series []series `json:"series"`
}

// series is the messages of one length to one rank. The times are of a round trip.
type series struct {
	Rank       int `json:"rank"`
	Words      int `json:"words"`
	Count      int `json:"count"`
	Verified   int `json:"verified"`
	demo.Times     // of round trips
	// MBps is both directions together, by the median.
	MBps float64 `json:"mb_per_s"`
}

// Table implements demo.Result.
func (r *result) Table(w io.Writer) {
	fmt.Fprint(w, "               ROUND TRIP (us)\nRANK   WORDS       min     median        max      MB/s  VERIFIED\n")
	for _, s := range r.Series {
		fmt.Fprintf(w, "%4d %7d %9.1f %10.1f %10.1f %9.2f  %d/%d\n", s.Rank, s.Words, s.Min, s.Median, s.Max, s.MBps, s.Verified, s.Count)
	}
}

// Wrong implements demo.Result.
func (r *result) Wrong() string {
	for _, s := range r.Series {
		if s.Verified != s.Count {
			return fmt.Sprintf("%d of %d messages of %d words came back from rank %d as they were sent", s.Verified, s.Count, s.Words, s.Rank)
		}
	}
	return ""
}
