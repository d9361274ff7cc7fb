package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// wordLen is the size in bytes of what messages are made of, int32.
const wordLen = 4

// runPingPong measures the time that a message of a size takes. c/pingpong.c is
// the same. Every message bears a number in its first and last word; all of its
// words are compared in the first and the last round of a size.
func runPingPong(ctx context.Context, c *mpi.Comm, steps []step, out io.Writer) error {
	b := pingPong{ctx: ctx, comm: c}
	for _, s := range steps {
		if s.n < wordLen || s.n%wordLen != 0 {
			return fmt.Errorf("%d bytes are not a number of words", s.n)
		}
		p, err := b.step(s)
		if err != nil {
			return fmt.Errorf("%d bytes: %w", s.n, err)
		}
		if c.Rank() == 0 {
			p.write(out)
		}
	}
	count := []int64{int64(b.verified)}
	if c.Rank() == 1 {
		return mpi.Send(ctx, c, count, 0, 0)
	}
	if _, err := mpi.Recv(ctx, c, count, 1, 0); err != nil {
		return err
	}
	fmt.Fprintf(out, verifiedFormat, b.verified+int(count[0]))
	return nil
}

type pingPong struct {
	ctx      context.Context
	comm     *mpi.Comm
	out, in  []int32
	verified int
}

func (b *pingPong) step(s step) (point, error) {
	words := s.n / wordLen
	b.out, b.in = make([]int32, words), make([]int32, words)
	for i := range b.out {
		b.out[i] = pattern(i, b.comm.Rank())
	}
	half := make([]time.Duration, 0, s.iterations)
	for i := -warmup; i < s.iterations; i++ {
		b.out[0], b.out[words-1] = number(i, b.comm.Rank()), number(i, b.comm.Rank())
		start := time.Now()
		if err := b.round(); err != nil {
			return point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := b.verify(i, i == -warmup || i == s.iterations-1); err != nil {
			return point{}, fmt.Errorf("round %d: %w", i, err)
		}
	}
	return newPoint(s, half, 0), nil
}

// round is a message from rank 0 and one back.
func (b *pingPong) round() error {
	if b.comm.Rank() == 1 {
		if err := b.recv(); err != nil {
			return err
		}
		return b.send()
	}
	if err := b.send(); err != nil {
		return err
	}
	return b.recv()
}

func (b *pingPong) send() error {
	return mpi.Send(b.ctx, b.comm, b.out, 1-b.comm.Rank(), 0)
}

func (b *pingPong) recv() error {
	_, err := mpi.Recv(b.ctx, b.comm, b.in, 1-b.comm.Rank(), 0)
	return err
}

// verify compares what has arrived, in the first and last word, or all.
func (b *pingPong) verify(round int, all bool) error {
	sender, last := 1-b.comm.Rank(), len(b.in)-1
	if err := expectWord(b.in, 0, number(round, sender)); err != nil {
		return err
	}
	if err := expectWord(b.in, last, number(round, sender)); err != nil {
		return err
	}
	for i := 1; all && i < last; i++ {
		if err := expectWord(b.in, i, pattern(i, sender)); err != nil {
			return err
		}
	}
	b.verified++
	return nil
}

func expectWord(words []int32, i int, want int32) error {
	if words[i] != want {
		return fmt.Errorf("word %d is %d instead of %d", i, words[i], want)
	}
	return nil
}

// pattern is a word of the messages of a sender.
func pattern(word, sender int) int32 { return int32(uint32(word)*2654435761 + uint32(sender)) }

// number is what a sender's message of a round bears in its first and last word.
func number(round, sender int) int32 {
	if sender == 0 {
		return int32(round)
	}
	return ^int32(round)
}
