package bench

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// windowStep measures windows, which are several messages sent together and answered by a single message. The receives
// of a window are posted before the window is requested. c/window.c is its counterpart.
func windowStep(sess *session, st step, size int) (Point, error) {
	words, err := wordsOf(st.n)
	if err != nil {
		return Point{}, err
	}
	w := window{session: sess, step: st, size: size, words: words, peer: 1 - sess.comm.Rank()}
	if sess.comm.Rank() == 1 {
		return Point{}, w.receiveWindows()
	}
	times := make([]time.Duration, 0, st.iterations)
	err = w.sendWindows(func(i int, took time.Duration) error {
		if i >= 0 {
			times = append(times, took/time.Duration(size))
		}
		return nil
	})
	if err != nil {
		return Point{}, err
	}
	return newPoint(st, times), nil
}

// pairsStep measures windows of one-word messages sent by several pairs at the same time: rank r of the first half
// sends to rank r of the second half. The time of a message is the total time divided by the number of messages.
func pairsStep(sess *session, st step) (Point, error) {
	rank, pairs := sess.comm.Rank(), st.n
	w := window{session: sess, step: st, size: rateWindow, words: 1, peer: rank + pairs}
	if rank >= pairs {
		w.peer = rank - pairs
		return Point{}, w.receiveWindows()
	}
	var begin time.Time
	err := w.sendWindows(func(i int, _ time.Duration) error {
		if i != -1 {
			return nil
		}
		err := sess.barrier(pairs)
		begin = time.Now()
		return err
	})
	if err != nil {
		return Point{}, err
	}
	if err := sess.barrier(pairs); err != nil {
		return Point{}, err
	}
	return Point{N: st.n, P50: micros(time.Since(begin)) / float64(rateWindow*st.iterations*pairs)}, nil
}

// barrier waits until the first n ranks have reached it.
func (s *session) barrier(n int) error {
	if s.comm.Rank() > 0 {
		if err := s.sendNumber(0, 0, 0); err != nil {
			return err
		}
		_, err := s.recvNumber(0, 0)
		return err
	}
	for r := 1; r < n; r++ {
		if _, err := s.recvNumber(r, 0); err != nil {
			return err
		}
	}
	for r := 1; r < n; r++ {
		if err := s.sendNumber(0, r, 0); err != nil {
			return err
		}
	}
	return nil
}

// window holds the state of one rank that sends or receives windows of messages.
type window struct {
	*session
	step
	size, words, peer int
}

// message returns the words of message number k. all is the buffer that holds one or more windows of messages.
func (w *window) message(all []int32, k int) []int32 { return all[k*w.words : (k+1)*w.words] }

// sendWindows sends the windows. After the answer to each window, it calls timed with the time since the window began.
func (w *window) sendWindows(timed func(i int, took time.Duration) error) error {
	if err := w.session.receiveNumber("the number after posted receives", w.peer, 0, 0); err != nil {
		return err
	}
	out := make([]int32, w.size*w.words)
	for k := range w.size {
		fill(w.message(out, k), 0)
	}
	sends := requests(mpi.Isend[int32], w.size)
	for i := -warmupWindows; i < w.iterations; i++ {
		w.printProgress(w.n, warmupWindows+i, warmupWindows+w.iterations)
		start := time.Now()
		for k := range sends {
			m := w.message(out, k)
			writeStamp(m, int32(i*w.size+k))
			var err error
			if sends[k], err = mpi.Isend(w.comm, m, w.peer, 0); err != nil {
				return err
			}
		}
		if err := mpi.Waitall(w.ctx, sends, nil); err != nil {
			return err
		}
		answer, err := w.recvNumber(w.peer, 0)
		if err != nil {
			return err
		}
		took := time.Since(start)
		if err := w.verifyNumber("an answer", answer, ^int32(i)); err != nil {
			return err
		}
		if err := timed(i, took); err != nil {
			return err
		}
	}
	return nil
}

// requests allocates n requests. Their type is the result type of the function passed, which is not called.
func requests[B, R any](_ func(*mpi.Comm, B, int, int) (R, error), n int) []R { return make([]R, n) }

// receiveWindows receives the windows. It posts the receives of the next window before it verifies the last one, so the
// buffer holds two windows.
func (w *window) receiveWindows() error {
	in := make([]int32, 2*w.size*w.words)
	posted := requests(mpi.Irecv[int32], 2*w.size)
	for i := -warmupWindows; i <= w.iterations; i++ {
		next, last := (i&1)*w.size, (1-i&1)*w.size
		if i > -warmupWindows {
			if err := mpi.Waitall(w.ctx, posted[last:last+w.size], nil); err != nil {
				return err
			}
		}
		for k := next; k < next+w.size && i < w.iterations; k++ {
			var err error
			if posted[k], err = mpi.Irecv(w.comm, w.message(in, k), w.peer, 0); err != nil {
				return err
			}
		}
		if i == -warmupWindows {
			if err := w.session.sendNumber(0, w.peer, 0); err != nil {
				return err
			}
			continue
		}
		if err := w.session.sendNumber(^int32(i-1), w.peer, 0); err != nil {
			return err
		}
		if err := w.verifyWindow(i-1, in[last*w.words:]); err != nil {
			return err
		}
	}
	return nil
}

// verifyWindow verifies the messages of a window.
func (w *window) verifyWindow(i int, in []int32) error {
	all := i == -warmupWindows || i == w.iterations-1
	for k := range w.size {
		if err := verify(w.message(in, k), int32(i*w.size+k), 0, all); err != nil {
			return fmt.Errorf("window %d, message %d: %w", i, k, err)
		}
		w.verified++
	}
	return nil
}
