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

type ring struct {
	words  demo.List
	rounds int
}

func newRing() *ring { return &ring{words: demo.List{1, 1000, 65536}} }

// Flags implements demo.Example.
func (r *ring) Flags(f *flag.FlagSet) {
	f.Var(&r.words, "words", "lengths of the messages in 32-bit `words`, with commas between them")
	f.IntVar(&r.rounds, "rounds", 100, "how often a message of each length goes round")
}

// Check implements demo.Example.
func (r *ring) Check(int) error {
	if r.rounds < 1 {
		return fmt.Errorf("-rounds %d: there is at least one", r.rounds)
	}
	for _, words := range r.words {
		if words < 1 || words > maxWords {
			return fmt.Errorf("-words %d: a message has 1 to %d words", words, maxWords)
		}
	}
	return nil
}

// Run implements demo.Example.
func (r *ring) Run(ctx context.Context, world *mpi.Comm) (demo.Result, error) {
	var all result
	for _, words := range r.words {
		s := series{Words: words, Rounds: r.rounds}
		run := s.pass
		if world.Rank() == 0 {
			run = s.begin
		}
		if err := run(ctx, world); err != nil {
			return nil, err
		}
		all.Series = append(all.Series, s)
	}
	if world.Rank() != 0 {
		return nil, nil
	}
	return &all, nil
}

// begin is the part of rank 0. It is alone in a ring of one, and then both sides
// of the message.
func (s *series) begin(ctx context.Context, c *mpi.Comm) error {
	message, back := make([]int32, s.Words), make([]int32, s.Words)
	below, above := neighbours(c)
	times := make([]time.Duration, s.Rounds)
	for i := range times {
		for j := range message {
			message[j] = int32(i<<20 + j) // differs from round to round
		}
		clear(back)
		start := time.Now()
		st, err := mpi.Sendrecv(ctx, c, message, above, tag, back, below, tag)
		if err != nil {
			return err
		}
		times[i] = time.Since(start)
		if mpi.Count[int32](st) == s.Words && slices.Equal(message, back) {
			s.Verified++
		}
	}
	s.Times = demo.TimesOf(times)
	s.Hop = s.Median / float64(c.Size())
	return nil
}

// pass is the part of all others.
func (s *series) pass(ctx context.Context, c *mpi.Comm) error {
	message := make([]int32, s.Words)
	below, above := neighbours(c)
	for range s.Rounds {
		if _, err := mpi.Recv(ctx, c, message, below, tag); err != nil {
			return err
		}
		if err := mpi.Send(ctx, c, message, above, tag); err != nil {
			return err
		}
	}
	return nil
}

func neighbours(c *mpi.Comm) (below, above int) {
	return (c.Rank() + c.Size() - 1) % c.Size(), (c.Rank() + 1) % c.Size()
}

type result struct {
	Series []series `json:"series"`
}

// series is the rounds of messages of one length. The times are of a round.
type series struct {
	Words    int `json:"words"`
	Rounds   int `json:"rounds"`
	Verified int `json:"verified"`
	demo.Times
	// Hop is the median time of a round divided by the ranks, in microseconds.
	Hop float64 `json:"hop_us"`
}

// Table implements demo.Result.
func (r *result) Table(w io.Writer) {
	fmt.Fprint(w, "               ROUND (us)              HOP (us)\n  WORDS       min     median        max     median  VERIFIED\n")
	for _, s := range r.Series {
		fmt.Fprintf(w, "%7d %9.1f %10.1f %10.1f %10.1f  %d/%d\n", s.Words, s.Min, s.Median, s.Max, s.Hop, s.Verified, s.Rounds)
	}
}

// Wrong implements demo.Result.
func (r *result) Wrong() string {
	for _, s := range r.Series {
		if s.Verified != s.Rounds {
			return fmt.Sprintf("%d of %d messages of %d words came round as they were sent", s.Verified, s.Rounds, s.Words)
		}
	}
	return ""
}
