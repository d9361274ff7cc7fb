package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestSimulationOfNextProgram ends programs in the middle of all kinds of operations, and checks that later
// programs receive all messages sent to them, in order, and no others. Each message identifies the program
// that sent it.
func TestSimulationOfNextProgram(t *testing.T) {
	eachSeed(t, 1, func(k *core.SimulatedKind) bool { return !k.Tree }, simulateNext)
}

func simulateNext(t *testing.T, k *core.SimulatedKind, seed uint64) *core.Simulated {
	rng := rand.New(rand.NewPCG(seed, 6))
	s := core.NewSimulated(t, k, seed, 2+rng.IntN(2))
	d := newDaemons(s, attach.Options{})
	hosts := s.Size()
	if k.FPGA {
		hosts = 1
		stop := d.echo(t)
		defer stop()
	}
	rounds := 2 + rng.IntN(3)
	pauses := []time.Duration{time.Second, 3 * time.Second}
	if k.FPGA || s.Size() == 2 && !extendedKinds(k) { // other kinds may retransmit a packet that cancels a message
		pauses = append(pauses, time.Millisecond, 20*time.Millisecond)
	}
	for round := range rounds {
		last := round == rounds-1
		var programs []func()
		for rank := range hosts {
			programs = append(programs, func() {
				p := &next{daemons: d, t: t, round: int32(round), rank: rank, echo: k.FPGA, rng: rng}
				if err := p.run(last); err != nil {
					t.Errorf("program %d of %d on rank %d: %v", round, rounds, rank, err)
				}
			})
		}
		if err := s.Run(programs...); err != nil {
			t.Errorf("program %d of %d: %v", round, rounds, err)
		}
		if t.Failed() {
			break
		}
		d.Pass(pauses[rng.IntN(len(pauses))])
		for rank := range hosts {
			if list := d.servers[rank].AttachedPrograms(); len(list) > 0 {
				t.Errorf("rank %d: %+v is still attached", rank, list)
			}
		}
	}
	if n := s.Wedges(); n > 0 {
		t.Errorf("%d packets would have wedged an FPGA", n)
	}
	return s
}

// echo makes all ranks except 0 return the messages that they receive from it, until stop is called.
func (d *daemons) echo(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	for rank := 1; rank < d.Size(); rank++ {
		dev := d.device(rank)
		dev.Served = false
		d.Serve(func() {
			buf := make([]byte, 4096)
			for {
				st, err := dev.Recv(ctx, 0, buf, mpe.Options{})
				if err == nil {
					_, err = dev.Send(ctx, 0, buf[:st.Bytes], mpe.Options{})
				}
				if errors.Is(err, context.Canceled) {
					return
				}
			}
		})
	}
	return func() {
		cancel()
		d.Pass(time.Second)
	}
}

// next is the program of a round on a rank.
type next struct {
	*daemons
	t     *testing.T
	round int32
	rank  int
	echo  bool // the other ranks return the messages that they receive
	rng   *rand.Rand
	world *mpi.Comm
	// requests are pending. received are their buffers, with the rank of each sender.
	requests []mpi.Request
	received []received
	sent     int32
}

type received struct {
	from int
	buf  []int32
}

// message returns a message that identifies its program and its number within that program.
func (p *next) message() []int32 {
	p.sent++
	m := make([]int32, []int{2, 2, 2, 400, 900}[p.rng.IntN(5)])
	m[0], m[1] = p.round<<8|int32(p.rank), p.sent
	return m
}

// check returns an error if a received message is wrong.
func (p *next) check(r received) error {
	if r.buf[0] != -1 && r.buf[0]>>8 != p.round {
		return fmt.Errorf("%w: the message is of program %d of rank %d", errWrong, r.buf[0]>>8, r.buf[0]&0xff)
	}
	return nil
}

func (p *next) run(last bool) error {
	a, err := p.attach(p.rank)
	if err != nil {
		return err
	}
	if !last && p.rng.IntN(2) == 0 {
		p.KillAfter(time.Duration(p.rng.IntN([]int{300, 3000, 20_000}[p.rng.IntN(3)]))*time.Microsecond,
			a.stream.HangUp)
	}
	if p.world, err = mpi.New(a); err != nil {
		return err
	}
	if last {
		ctx, stop := a.WithTimeout(p.t.Context(), 2*time.Minute)
		defer stop()
		if err := p.exchange(ctx); err != nil {
			return err
		}
		return a.Client.Close(p.t.Context())
	}
	for range 1 + p.rng.IntN(5) {
		if err := p.begin(); err != nil {
			return err
		}
		for range p.rng.IntN(3) { // let some time pass
			a.rank.Yield()
		}
	}
	ctx, stop := a.WithTimeout(p.t.Context(), time.Duration(p.rng.IntN(10))*time.Millisecond)
	defer stop()
	if p.rng.IntN(2) == 0 {
		_ = mpi.Waitall(ctx, p.requests, nil) // the other ranks may prevent its success
	}
	for _, r := range p.received {
		if err := p.check(r); err != nil {
			return err
		}
	}
	if p.rng.IntN(2) == 0 || p.echo { // a node may owe an answer even to a program that ended cleanly
		a.stream.HangUp()
		return nil
	}
	_ = a.Client.Close(p.t.Context())
	return nil
}

// begin begins an operation.
func (p *next) begin() error {
	n := p.world.Size()
	peer := (p.rank + 1 + p.rng.IntN(n-1)) % n
	one, many := []int32{p.round << 8}, make([]int32, n) // of a call that may conflict with other operations
	var r mpi.Request
	var err error
	switch p.rng.IntN(10) {
	case 0, 1, 2:
		send := mpi.Isend[int32]
		if info, err := p.device(p.rank).Peer(peer); err == nil && info.Profile == "extended" {
			send = mpi.Issend[int32] // other ranks may be done, and wait for the next program
		}
		r, err = send(p.world, p.message(), peer, 0)
	case 3, 4, 5:
		buf := make([]int32, 1000)
		buf[0] = -1
		p.received = append(p.received, received{peer, buf})
		r, err = mpi.Irecv(p.world, buf, peer, 0)
	case 6:
		r, err = mpi.Ibcast(p.world, one, p.rng.IntN(n))
	case 7:
		r, err = mpi.Ireduce(p.world, one, make([]int32, 1), mpi.Max, p.rng.IntN(n))
	case 8:
		r, err = mpi.Iallreduce(p.world, one, make([]int32, 1), mpi.Max)
	default:
		r, err = mpi.Igather(p.world, one, many, p.rng.IntN(n))
	}
	if err == nil {
		p.requests = append(p.requests, r)
	}
	if mpi.ClassOf(err) == mpi.ErrPending { // one call at a time
		return nil
	}
	return err
}

// exchange sends every other rank some messages, and receives theirs, or its own returned messages.
func (p *next) exchange(ctx context.Context) error {
	if p.echo {
		return p.thereAndBack(ctx)
	}
	const messages = 3
	for i := range messages {
		for peer := range p.world.Size() {
			if peer == p.rank {
				continue
			}
			buf := make([]int32, 1000)
			buf[0] = -1
			p.received = append(p.received, received{peer, buf})
			in, err := mpi.Irecv(p.world, buf, peer, 0)
			if err != nil {
				return err
			}
			m := p.message()
			m[1] = int32(i)
			out, err := mpi.Isend(p.world, m, peer, 0)
			if err != nil {
				return err
			}
			p.requests = append(p.requests, in, out)
		}
		if p.rng.IntN(2) == 0 {
			if err := mpi.Waitall(ctx, p.requests, nil); err != nil {
				return err
			}
			p.requests = p.requests[:0]
		}
	}
	if err := mpi.Waitall(ctx, p.requests, nil); err != nil {
		return err
	}
	of := map[int]int32{}
	for _, r := range p.received {
		if err := p.check(r); err != nil {
			return err
		}
		if r.buf[0] != p.round<<8|int32(r.from) || r.buf[1] != of[r.from] {
			return fmt.Errorf("%w: message %d of rank %d comes as number %d", errWrong, r.buf[1], r.from, of[r.from])
		}
		of[r.from]++
	}
	return nil
}

func (p *next) thereAndBack(ctx context.Context) error {
	for range 3 {
		for peer := 1; peer < p.world.Size(); peer++ {
			m, buf := p.message(), make([]int32, 1000)
			if err := mpi.Send(ctx, p.world, m, peer, 0); err != nil {
				return err
			}
			if _, err := mpi.Recv(ctx, p.world, buf, peer, 0); err != nil {
				return err
			}
			if err := p.check(received{peer, buf}); err != nil {
				return err
			}
			if buf[1] != m[1] {
				return fmt.Errorf("%w: message %d comes back as number %d", errWrong, m[1], buf[1])
			}
		}
	}
	return nil
}
