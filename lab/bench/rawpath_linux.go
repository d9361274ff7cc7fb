package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

func openXDP(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
	return xdp.Open(local, peers)
}

// Datagrams of these lengths do not belong to a step, because they are shorter than rawHeaderLen. Rank 1 returns each
// greeting of rank 0. Rank 1 sends its counts after each step.
const (
	greetingLen = 4
	countsLen   = 3 * 8
)

const (
	// greetingInterval is the time after which rank 0 sends the next greeting although rank 1 did not return the last one.
	greetingInterval = time.Millisecond
	// yieldPolls is the number of polls after which a rank yields its processor, as in c/raw.h.
	yieldPolls = 1 << 12
)

// rawPath is one end of raw-xdp. It exchanges datagrams by a path, and polls, without an engine and without a socket.
type rawPath struct {
	ctx   context.Context
	path  udp.Path
	rank  int
	polls int
	out   [3][]byte
	batch [1]udp.Datagram
}

// runRawPath runs the steps of a ping-pong on one rank, with datagrams of the same lengths as c/rawpingpong.c.
func runRawPath(ctx context.Context, f *rankFlags, steps []step, stdout io.Writer) error {
	cfg, err := config.Load(f.config)
	if err != nil {
		return err
	}
	addresses := make([]netip.AddrPort, len(cfg.Ranks))
	for i := range addresses {
		addresses[i] = cfg.Rank(i).Address.AddrPort
	}
	runtime.LockOSThread() // never unlocked: the process exits afterwards
	if err := stayOn(f.rank); err != nil {
		return err
	}
	path, err := xdp.Open(addresses[f.rank], addresses)
	if err != nil {
		return err
	}
	defer path.Close()
	r := rawPath{ctx: ctx, path: path, rank: f.rank}
	if r.rank == 0 {
		if err := r.greet(f.warm); err != nil {
			return err
		}
	}
	for _, st := range steps {
		used := f.used()
		point, err := r.pingPong(st)
		if err == nil {
			counts := [3]int64{int64(f.used() - used), int64(warmup + st.iterations), int64(f.memory())}
			err = r.report(&point, counts, stdout)
		}
		if err != nil {
			return fmt.Errorf("rank %d: message %d: %w", r.rank, st.n, err)
		}
	}
	return nil
}

// greet exchanges greetings until rank 1 has answered and the warm-up time has passed.
func (r *rawPath) greet(warm time.Duration) error {
	greeting := make([]byte, greetingLen)
	answered := false
	for start := time.Now(); !answered || time.Since(start) < warm; {
		if err := r.send(greeting); err != nil {
			return err
		}
		received := false
		for sent := time.Now(); !received && time.Since(sent) < greetingInterval; {
			datagram, err := r.poll()
			if err != nil {
				return err
			}
			received = datagram != nil
		}
		answered = answered || received
	}
	return nil
}

func (r *rawPath) pingPong(st step) (Point, error) {
	words, err := wordsOf(st.n + rawHeaderLen)
	if err != nil {
		return Point{}, err
	}
	pattern := make([]int32, words)
	fill(pattern, r.rank)
	out, err := binary.Append(nil, binary.NativeEndian, pattern)
	if err != nil {
		return Point{}, err
	}
	half := make([]time.Duration, 0, st.iterations)
	for i := -warmup; i < st.iterations; i++ {
		number := uint32(stampWord(i, r.rank))
		binary.NativeEndian.PutUint32(out, number)
		binary.NativeEndian.PutUint32(out[len(out)-wordLen:], number)
		start := time.Now()
		in, err := r.exchange(out)
		if err != nil {
			return Point{}, err
		}
		if i >= 0 {
			half = append(half, time.Since(start)/2)
		}
		if err := r.verify(in, stampWord(i, 1-r.rank), i == -warmup || i == st.iterations-1); err != nil {
			return Point{}, fmt.Errorf("round %d: %w", i, err)
		}
	}
	return newPoint(st, half), nil
}

// exchange sends a datagram from rank 0 to rank 1, and one back. The result is valid until the next exchange.
func (r *rawPath) exchange(out []byte) (in []byte, err error) {
	if r.rank == 0 {
		if err := r.send(out); err != nil {
			return nil, err
		}
		return r.receive(len(out))
	}
	if in, err = r.receive(len(out)); err != nil {
		return nil, err
	}
	return in, r.send(out)
}

// verify checks either all words of a received datagram, or only the first and the last one.
func (r *rawPath) verify(datagram []byte, number int32, all bool) error {
	if !all {
		ends := [2]int32{int32(binary.NativeEndian.Uint32(datagram)),
			int32(binary.NativeEndian.Uint32(datagram[len(datagram)-wordLen:]))}
		return verify(ends[:], number, 1-r.rank, false)
	}
	words := make([]int32, len(datagram)/wordLen)
	if _, err := binary.Decode(datagram, binary.NativeEndian, words); err != nil {
		return err
	}
	return verify(words, number, 1-r.rank, true)
}

func (r *rawPath) send(datagram []byte) error {
	peer := 1 - r.rank
	r.out[0] = datagram
	if !r.path.Carries(peer, len(datagram)) || !r.path.Stage(peer, &r.out) {
		return fmt.Errorf("the path does not carry %d bytes: %+v", len(datagram), r.path.State())
	}
	for {
		err := r.path.Flush()
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
}

// receive returns the next datagram, which must have the given length. Rank 1 returns greetings. Rank 0 ignores them.
func (r *rawPath) receive(length int) ([]byte, error) {
	for {
		datagram, err := r.poll()
		switch {
		case err != nil:
			return nil, err
		case datagram == nil:
		case len(datagram) == length:
			return datagram, nil
		case len(datagram) != greetingLen:
			return nil, fmt.Errorf("%d bytes instead of %d", len(datagram), length)
		case r.rank == 1:
			if err := r.send(datagram); err != nil {
				return nil, err
			}
		}
	}
}

// poll returns the next datagram, or nil.
func (r *rawPath) poll() ([]byte, error) {
	if r.path.Pending() && r.path.Receive(r.batch[:]) > 0 {
		return r.batch[0].Bytes, nil
	}
	if r.polls++; r.polls%yieldPolls != 0 {
		return nil, nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0); errno != 0 {
		return nil, errno
	}
	return nil, r.ctx.Err()
}

// report sends the counts of rank 1, processor time, number of messages, and peak memory, to rank 0, which prints them
// together with its own counts and the point.
func (r *rawPath) report(p *Point, counts [3]int64, stdout io.Writer) error {
	if r.rank == 1 {
		datagram, err := binary.Append(nil, binary.NativeEndian, counts[:])
		if err != nil {
			return err
		}
		return r.send(datagram)
	}
	datagram, err := r.receive(countsLen)
	if err != nil {
		return err
	}
	var theirs [3]int64
	if _, err := binary.Decode(datagram, binary.NativeEndian, theirs[:]); err != nil {
		return err
	}
	verified := counts[1] + theirs[1]
	p.CPU = micros(time.Duration(counts[0]+theirs[0])) / float64(verified)
	p.write(stdout)
	_, err = fmt.Fprintf(stdout, "memory %d\nverified %d\n", max(counts[2], theirs[2]), verified)
	return err
}
