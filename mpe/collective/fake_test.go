package collective

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// world is a set of Executors whose engines form a network in memory. A message arrives immediately and as a whole.
type world []*fakeEngine

// fakeEngine is the Engine of a rank.
type fakeEngine struct {
	silent int // a rank that has never sent anything, or 0
	world  *world
	rank   int
	calls  *Executor
	// posted lists receives, and arrived lists unexpected messages.
	posted, arrived []*Message
	ended           []ended
	jobs            []Job
	now             handshake.Instant
	// internal lists this rank's internal messages that were not delivered yet.
	internal []internal
	// shared is the rank's shared buffer, or nil.
	shared *fakeBuffer
}

type ended struct {
	m     *Message
	bytes int64
}

type internal struct {
	to        int
	comm, tag uint32
	payload   []byte
	o         *Ordering
}

var errNoRank = errors.New("no such rank")

func newWorld(ranks int, configure func(rank int, cfg *Config)) *world {
	w := &world{}
	for rank := range ranks {
		cfg := Config{}
		if configure != nil {
			configure(rank, &cfg)
		}
		f := &fakeEngine{world: w, rank: rank}
		f.calls = New(f, ranks, cfg)
		*w = append(*w, f)
	}
	return w
}

func (f *fakeEngine) Rank() int { return f.rank }

func (f *fakeEngine) Wire(rank int) (Wire, error) {
	if rank < 0 || rank >= len(*f.world) {
		return Wire{}, errNoRank
	}
	host := (*f.world)[rank].shared != nil
	return Wire{Profile: "fake", Shared: host, SingleCopy: host}, nil
}

func (f *fakeEngine) Shared() SharedBuffers {
	if f.shared == nil {
		return nil
	}
	return f.shared
}

func (f *fakeEngine) Now() handshake.Instant { return f.now }
func (f *fakeEngine) Random() uint64         { return 41 }
func (f *fakeEngine) UnsentBytes() int       { return 0 }
func (f *fakeEngine) DiscardStale(uint32)    {}
func (f *fakeEngine) Compute(j Job)          { f.jobs = append(f.jobs, j) }

func (f *fakeEngine) HasAnswered(rank int) bool { return rank == 0 || rank != f.silent }

func (f *fakeEngine) CauseOf(error) FailureCause { return CauseOther }

func (f *fakeEngine) WaitError(_ *Message, cause error) error {
	return fmt.Errorf("it waits: %w", cause)
}

// Start copies a message to its peer, so that a send ends at once.
func (f *fakeEngine) Start(m *Message) error {
	m.Request = f
	if !m.Send {
		f.posted = append(f.posted, m)
		f.match()
		return nil
	}
	to := (*f.world)[m.Peer]
	to.arrived = append(to.arrived,
		&Message{Call: &Operation{Comm: m.Call.Comm, Tag: m.Call.Tag}, Peer: f.rank, Buf: slices.Clone(m.Buf)})
	f.ended = append(f.ended, ended{m, int64(len(m.Buf))})
	to.match()
	return nil
}

func (f *fakeEngine) Forward(recv, _ *Message) (later bool, err error) { return true, f.Start(recv) }

// match gives receives the oldest messages that match them.
func (f *fakeEngine) match() {
	f.posted = slices.DeleteFunc(f.posted, func(m *Message) bool {
		i := slices.IndexFunc(f.arrived, func(in *Message) bool {
			return in.Peer == m.Peer && in.Call.Comm == m.Call.Comm && in.Call.Tag == m.Call.Tag
		})
		if i < 0 {
			return false
		}
		copy(m.Buf, f.arrived[i].Buf)
		f.ended = append(f.ended, ended{m, int64(len(f.arrived[i].Buf))})
		f.arrived = slices.Delete(f.arrived, i, i+1)
		return true
	})
}

func (f *fakeEngine) Cancel(m *Message) {
	f.posted = slices.DeleteFunc(f.posted, func(p *Message) bool { return p == m })
	f.ended = slices.DeleteFunc(f.ended, func(e ended) bool { return e.m == m })
}

func (f *fakeEngine) SendInternal(rank int, comm, tag uint32, payload []byte, o *Ordering) {
	f.internal = append(f.internal, internal{rank, comm, tag, slices.Clone(payload), o})
}

// outcome is the result of a call for its caller.
type outcome struct {
	ended bool
	err   error
}

func (f *fakeEngine) Finish(x *Execution, err error) {
	*x.Request.(*outcome) = outcome{true, err}
}

// step executes the rank's pending work, and reports whether there was any.
func (f *fakeEngine) step() bool {
	did := len(f.ended) > 0 || f.calls.Pending() || len(f.jobs) > 0 || len(f.internal) > 0
	if f.shared != nil && f.shared.report(f.calls) {
		did = true
	}
	for len(f.jobs) > 0 {
		j := f.jobs[0]
		f.jobs = f.jobs[1:]
		f.calls.JobDone(j, j.Run())
	}
	for len(f.ended) > 0 || f.calls.Pending() {
		for len(f.ended) > 0 {
			e := f.ended[0]
			f.ended = f.ended[1:]
			f.calls.MessageDone(e.m, e.bytes, nil)
		}
		f.calls.Advance()
	}
	for len(f.internal) > 0 {
		m := f.internal[0]
		f.internal = f.internal[1:]
		if to := (*f.world)[m.to].calls; to.InternalOpened(f.rank, m.comm, int32(m.tag), int64(len(m.payload))) {
			to.InternalArrived(f.rank, m.comm, m.payload)
		}
		if m.o != nil {
			f.calls.OrderConfirmed(m.o)
		}
	}
	return did
}

// run executes steps until no rank has pending work.
func (w *world) run() {
	for again := true; again; {
		again = false
		for _, f := range *w {
			again = f.step() || again
		}
	}
}

// start makes a rank of the world post a call in communicator 1.
func (w *world) start(t *testing.T, rank int, o Operation) (*Execution, *outcome) {
	t.Helper()
	o.Comm = 1
	for m := range *w {
		o.Members = append(o.Members, m)
	}
	return w.startIn(t, rank, o)
}

// startIn makes a rank of the world post a call in the call's own communicator.
func (w *world) startIn(t *testing.T, rank int, o Operation) (*Execution, *outcome) {
	t.Helper()
	f, x, end := (*w)[rank], new(Execution), new(outcome)
	o.Call.Rank, o.Call.Ranks = slices.Index(o.Members, rank), len(o.Members)
	if err := x.Prepare(&o, f); err != nil {
		t.Fatalf("rank %d: %v", rank, err)
	}
	if err := f.calls.Start(x, end); err != nil {
		t.Fatalf("rank %d: %v", rank, err)
	}
	return x, end
}

// all makes all ranks post a call, which operation describes, and waits until it ends.
func (w *world) all(t *testing.T, tag int, operation func(rank int) Operation) {
	t.Helper()
	ends := make([]*outcome, len(*w))
	for rank := range *w {
		o := operation(rank)
		o.Tag = tag
		_, ends[rank] = w.start(t, rank, o)
	}
	w.run()
	for rank, end := range ends {
		if !end.ended || end.err != nil {
			t.Fatalf("rank %d: %+v", rank, end)
		}
	}
}

// bcast broadcasts n ones from a root, and checks the result.
func (w *world) bcast(t *testing.T, tag, root, n int) {
	t.Helper()
	bufs := make([][]byte, len(*w))
	w.all(t, tag, func(rank int) Operation {
		bufs[rank] = make([]byte, n)
		if rank == root {
			bufs[rank] = slices.Repeat([]byte{1}, n)
		}
		return Operation{Call: coll.Call{Collective: coll.Bcast, Root: root, Bytes: n}, Recv: bufs[rank]}
	})
	for rank, b := range bufs {
		if slices.Contains(b, 0) {
			t.Errorf("rank %d has not all of the broadcast", rank)
		}
	}
}
