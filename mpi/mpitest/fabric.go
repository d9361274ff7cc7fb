package mpitest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

// Options configures the devices of a Fabric.
type Options struct {
	// Eager is the size in bytes of the largest message for which a send completes before a receive has
	// matched.
	Eager int
	// Between returns the limits of the wire between two ranks. If the field is nil, wires have no limits.
	Between func(a, b int) mpe.PeerInfo
}

// Fabric is an in-memory cluster. It matches messages by the most obvious algorithm, under a single lock.
type Fabric struct {
	opts  Options
	mu    sync.Mutex
	ranks []*device
	// unfreed counts the operations that were started and have not been freed.
	unfreed atomic.Int64
}

// device is one rank.
type device struct {
	mpe.BasicDevice
	fabric *Fabric
	rank   int
	// posted and arrived hold the receives and the messages that have not matched yet, in order of arrival.
	posted  []*op
	arrived []*message
	// probes holds the channels of waiting probes, which are notified when a message arrives.
	probes     map[chan struct{}]struct{}
	closed     bool
	claimCount int // number of claimed messages so far, used as tags
}

// message is a message that has not been received yet.
type message struct {
	from int
	// send is the sender's operation while it is pending; the payload is then in that operation's buffer. Once the send
	// has completed, data holds the payload.
	send *op
	data []byte
	op   mpe.Operation
}

// New returns the devices of an in-memory cluster of n ranks.
func New(n int, opts Options) []mpe.Device {
	f := &Fabric{opts: opts}
	devices := make([]mpe.Device, n)
	for r := range n {
		d := &device{fabric: f, rank: r, probes: make(map[chan struct{}]struct{})}
		f.ranks = append(f.ranks, d)
		devices[r] = d
	}
	return devices
}

// World returns a function that makes devices for the suite. At the end of a test, it closes devices that are
// still open, and checks that a successful test has freed every operation.
func World(opts Options) func(t *testing.T, n int) []mpe.Device {
	return func(t *testing.T, n int) []mpe.Device {
		devices := New(n, opts)
		t.Cleanup(func() {
			for _, d := range devices {
				_ = d.Close(context.Background()) // may have been closed by the test
			}
			if kept := devices[0].(*device).fabric.unfreed.Load(); kept != 0 && !t.Failed() {
				t.Errorf("%d operations were not freed", kept)
			}
		})
		return devices
	}
}

func (d *device) Rank() int { return d.rank }
func (d *device) Size() int { return len(d.fabric.ranks) }

func (d *device) Peer(rank int) (mpe.PeerInfo, error) {
	if rank < 0 || rank >= d.Size() {
		return mpe.PeerInfo{}, fmt.Errorf("rank %d: %w", rank, mpe.ErrRank)
	}
	return d.wire(rank), nil
}

// wire returns the limits of the wire to another rank.
func (d *device) wire(rank int) mpe.PeerInfo {
	info := mpe.PeerInfo{Profile: "extended"}
	if d.fabric.opts.Between != nil && rank != d.rank {
		info = d.fabric.opts.Between(d.rank, rank)
	}
	info.Kind, info.Address = "memory", fmt.Sprintf("memory:%d", rank)
	return info
}

func (d *device) Start(o mpe.Operation) (mpe.Op, error) {
	fabric := d.fabric
	fabric.mu.Lock()
	defer fabric.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("rank %d: %w", d.rank, mpe.ErrClosed)
	}
	if err := d.check(o); err != nil {
		return nil, err
	}
	fabric.unfreed.Add(1)
	x := &op{dev: d, operation: o, done: make(chan struct{})}
	if o.Kind == mpe.OpRecv {
		d.receive(x)
	} else {
		d.send(x)
	}
	return x, nil
}

// check returns an error if the wire cannot carry the operation.
func (d *device) check(o mpe.Operation) error {
	if o.Peer == mpe.AnySource && o.Kind == mpe.OpRecv {
		for r := range d.fabric.ranks {
			if o.Comm == 0 && o.Tag > 0 && d.wire(r).NoTags {
				return fmt.Errorf("rank %d, tag %d: %w", d.rank, o.Tag, mpe.ErrWildcard)
			}
		}
		return nil
	}
	w, err := d.Peer(o.Peer)
	switch {
	case err != nil:
		return err
	case w.Words && len(o.Buf)%4 != 0:
		return fmt.Errorf("%d bytes: %w", len(o.Buf), mpe.ErrLength)
	case w.NoEmpty && o.Kind != mpe.OpRecv && len(o.Buf) == 0:
		return fmt.Errorf("rank %d: %w", o.Peer, handshake.ErrEmpty)
	case w.SmallTags && o.Tag > 255:
		return fmt.Errorf("tag %d: %w", o.Tag, mpe.ErrTag)
	case w.NoComms && o.Comm != 0:
		return fmt.Errorf("communicator %d: %w", o.Comm, mpe.ErrComm)
	}
	return nil
}

func (d *device) send(x *op) {
	dst := d.fabric.ranks[x.operation.Peer]
	msg := &message{from: d.rank, send: x, op: x.operation}
	for i, r := range dst.posted {
		if dst.matches(r.operation, msg) {
			dst.posted = append(dst.posted[:i], dst.posted[i+1:]...)
			r.deliver(msg)
			return
		}
	}
	if x.operation.Kind == mpe.OpSend && len(x.operation.Buf) <= d.fabric.opts.Eager {
		msg.send, msg.data = nil, append([]byte(nil), x.operation.Buf...)
		x.finish(mpe.Status{Send: true, Peer: x.operation.Peer}, nil)
	}
	dst.arrived = append(dst.arrived, msg)
	for p := range dst.probes {
		notify(p)
	}
}

func (d *device) receive(x *op) {
	for i, m := range d.arrived {
		if d.matches(x.operation, m) {
			d.arrived = append(d.arrived[:i], d.arrived[i+1:]...)
			x.deliver(m)
			return
		}
	}
	d.posted = append(d.posted, x)
}

// matches reports whether a receive matches a message.
func (d *device) matches(r mpe.Operation, m *message) bool {
	w := d.wire(m.from)
	return r.Comm == m.op.Comm &&
		(r.Peer == mpe.AnySource || r.Peer == m.from) &&
		(r.Tag == mpe.AnyTag || r.Tag == m.op.Tag || w.NoTags) &&
		(!w.NoTags || r.AnyDatatype || r.Datatype == m.op.Datatype)
}

// status returns the status that the receiver of a message gets.
func (d *device) status(m *message) mpe.Status {
	st := mpe.Status{Peer: m.from, Bytes: int64(len(m.payload())), Comm: m.op.Comm, Datatype: m.op.Datatype,
		Tag: m.op.Tag}
	if d.wire(m.from).NoTags {
		st.Tag = 0
	}
	return st
}

func (m *message) payload() []byte {
	if m.send != nil {
		return m.send.operation.Buf
	}
	return m.data
}

func (d *device) Probe(ctx context.Context, match mpe.Match, wait bool) (mpe.Status, bool, error) {
	arrival := make(chan struct{}, 1)
	d.fabric.mu.Lock()
	defer d.fabric.mu.Unlock()
	d.probes[arrival] = struct{}{}
	defer delete(d.probes, arrival)
	for {
		if d.closed {
			return mpe.Status{}, false, fmt.Errorf("rank %d: %w", d.rank, mpe.ErrClosed)
		}
		r := mpe.Operation{Kind: mpe.OpRecv, Peer: match.Source, Tag: match.Tag, Comm: match.Comm, AnyDatatype: true}
		for _, msg := range d.arrived {
			if d.matches(r, msg) {
				st := d.status(msg)
				if d.wire(msg.from).NoLength {
					st.Bytes = mpe.UnknownLength
				}
				if match.Claim {
					d.claimCount++
					msg.op.Comm, msg.op.Tag, st.Claim = mpe.ClaimComm, d.claimCount, d.claimCount
				}
				return st, true, nil
			}
		}
		if !wait {
			return mpe.Status{}, false, nil
		}
		d.fabric.mu.Unlock()
		select {
		case <-arrival:
			d.fabric.mu.Lock()
		case <-ctx.Done():
			d.fabric.mu.Lock()
			return mpe.Status{}, false, fmt.Errorf("rank %d waits for a message: %w", d.rank, ctxerr.Cause(ctx))
		}
	}
}

func (d *device) Close(context.Context) error {
	d.fabric.mu.Lock()
	defer d.fabric.mu.Unlock()
	if d.closed {
		return mpe.ErrClosed
	}
	d.closed = true
	for _, r := range d.posted {
		r.finish(mpe.Status{}, mpe.ErrClosed)
	}
	d.posted = nil
	// Pending sends of this rank fail. Messages whose sends have completed still arrive.
	for _, other := range d.fabric.ranks {
		kept := other.arrived[:0]
		for _, m := range other.arrived {
			if m.send != nil && m.send.dev == d {
				m.send.finish(mpe.Status{Send: true}, mpe.ErrClosed)
				continue
			}
			kept = append(kept, m)
		}
		other.arrived = kept
	}
	for p := range d.probes {
		notify(p)
	}
	return nil
}

// notify sends a value to the channel c, unless c is full.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (d *device) Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctxerr.Cause(ctx)
	}
}

// StartCollective executes the call by exchanging messages over the fabric.
func (d *device) StartCollective(c *collective.Operation) (mpe.Op, error) {
	return colltest.StartOn(d, c)
}

// Wire implements collective.Caller.
func (d *device) Wire(rank int) (collective.Wire, error) { return mpe.WireOf(d.Peer(rank)) }
