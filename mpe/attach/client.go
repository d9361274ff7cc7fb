package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// Client is a program's connection to a rank of a running daemon. It implements mpe.Device.
type Client struct {
	mpe.Minimal
	socket string
	stream wire.Stream
	in     *wire.Reader
	out    *wire.Outbox
	rank   int
	// granted is the WELCOME that the daemon sent.
	granted wire.Welcome
	arena   arena
	peers   []mpe.PeerInfo

	// spin is answerTime, except in tests.
	spin time.Duration

	// ended is closed when the connection has ended and all operations are done. stop stops the writing
	// goroutine.
	ended chan struct{}
	stop  context.CancelFunc

	group  progress.Group
	source wire.Polled // the source that group polls
	// done is scratch memory for the reading goroutine. That is the goroutine that polls for the group or, if
	// the stream's Read blocks, a dedicated goroutine.
	done wire.Done

	mu      sync.Mutex
	ops     table
	fewer   chan struct{} // wakes up callers that wait for operations to end
	leaving bool
	hung    error // reason why this side closed the connection
	err     error // reason why no operation can be started
}

var _ mpe.Device = (*Client)(nil)

// attachTime is the maximum time that the daemon may take to grant a rank. It is longer than the time that the
// daemon waits for the HELLO of a silent program.
const attachTime = 30 * time.Second

// Dial attaches to a rank of the daemon that listens on socket. If rank is AnyRank, it attaches to any of the
// daemon's ranks. The error is a *RefusedError if the daemon refuses the program, and a *ForeignError if
// CheckServer rejects the daemon.
func Dial(ctx context.Context, socket string, rank int) (*Client, error) {
	return dial(ctx, socket, rank, wire.FlagRings|wire.FlagArena, attachTime)
}

// DialSocket is like Dial, but uses no shared memory: frames are sent through the socket.
func DialSocket(ctx context.Context, socket string, rank int) (*Client, error) {
	return dial(ctx, socket, rank, 0, attachTime)
}

// dial implements Dial. flags are the flags to send in HELLO. limit is the maximum time to wait for the
// daemon's answer.
func dial(ctx context.Context, socket string, rank int, flags uint32, limit time.Duration) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("no answer for %v: the daemon is stopped or overloaded, or no zrlmpid listens there: %w",
			limit, context.DeadlineExceeded))
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		err = rlimit.Descriptor(err)
		if !rlimit.Is(err) && ctx.Err() == nil {
			err = fmt.Errorf("no zrlmpid accepts programs at %s: %w", socket, err)
		}
		return nil, err
	}
	if err := CheckServer(conn.(*net.UnixConn), socket); err != nil {
		conn.Close()
		return nil, fmt.Errorf("attaching to %s: %w", rankName(rank), err)
	}
	greeting := wire.NewGreeting(conn.(*net.UnixConn))
	c := newClient(socket, greeting)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = c.greet(conn, rank, flags)
	if !stop() { // the deadline has been set, or is about to be
		err = ctxerr.Of(ctx)
	}
	var stream wire.Polled
	if err == nil {
		stream, err = greeting.Stream(c.granted.Ring, c.granted.Arena)
	}
	if err == nil {
		if err = c.open(stream); err != nil {
			stream.Close()
		}
	}
	if err != nil {
		greeting.Close()
		return nil, fmt.Errorf("attaching to %s at %s: %w", rankName(rank), socket, rlimit.Descriptor(err))
	}
	return c, nil
}

// DialStream attaches to a rank through a stream that is connected to a daemon's ServeStream. If it fails, it
// closes the stream.
func DialStream(stream wire.Stream, rank int) (*Client, error) {
	c := newClient("a stream", stream)
	err := c.greet(stream, rank, 0)
	if err == nil {
		err = c.open(stream)
	}
	if err != nil {
		stream.Close()
		return nil, fmt.Errorf("attaching to %s: %w", rankName(rank), err)
	}
	return c, nil
}

func newClient(socket string, from io.Reader) *Client {
	return &Client{socket: socket, in: wire.NewReader(from), ended: make(chan struct{}), fewer: make(chan struct{}, 1),
		spin: answerTime}
}

// open switches from the greeting to stream. If the stream can be polled, goroutines read the daemon's frames
// while they wait for an operation; see package progress.
func (c *Client) open(stream wire.Stream) error {
	c.stream, c.out = stream, wire.NewOutbox(stream)
	c.in.From(stream)
	c.group.Init(nil, c.granted.Flags&wire.FlagOversubscribed != 0)
	var polled bool
	c.source, polled = stream.(wire.Polled)
	if r, ok := stream.(wire.Rings); ok {
		c.out.Rings = r
		c.in.FromRings(r)
		c.arena.open(r.Arena())
		c.group.PollAlone(r.OtherProcessor) // a program may use several ranks, each with its own ring
	} else if polled {
		c.in.FromSocket()
		c.group.PollAlone(nil)
	}
	// A reader should first receive the frames that the daemon sent before the connection ended.
	c.out.Failed = func() {
		stream.After(wire.FarewellTime, stream.HangUp)
		c.group.Watch()
	}
	writing, stop := context.WithCancel(context.Background())
	c.stop = stop
	stream.Go(func() { c.out.Run(writing) })
	if !polled {
		stream.Go(func() {
			_, err := c.pump()
			c.end(err)
		})
		return nil
	}
	if err := c.group.Add(c.source.Descriptor(), (*frames)(c), progress.Network); err != nil {
		stop()
		return err
	}
	c.group.Watch()
	return nil
}

func rankName(rank int) string {
	if rank == wire.AnyRank {
		return "any rank"
	}
	return fmt.Sprintf("rank %d", rank)
}

// greet requests the rank and reads the daemon's answer.
func (c *Client) greet(conn io.Writer, rank int, flags uint32) error {
	// A daemon that refuses the program may send REFUSED and close the connection before HELLO has been
	// written.
	_, written := conn.Write(wire.HelloFrame(wire.Hello{Version: wire.Version, Rank: int32(rank), Flags: flags}))
	if err := c.in.Next(); err != nil {
		return errors.Join(written, err)
	}
	switch c.in.Type {
	case wire.FrameWelcome:
	case wire.FrameRefused:
		return c.in.ReadRefused()
	default:
		return wire.Violationf("the daemon answered with %v instead of WELCOME", c.in.Type)
	}
	w, err := c.in.ReadWelcome()
	if err != nil {
		return err
	}
	c.rank, c.granted = int(w.Rank), w
	for rank := range int(w.Size) {
		if err := c.in.Next(); err != nil {
			return err
		}
		if c.in.Type != wire.FramePeer {
			return wire.Violationf("%v instead of PEER", c.in.Type)
		}
		p, err := c.in.ReadPeer(rank)
		if err != nil {
			return err
		}
		c.peers = append(c.peers, p)
	}
	return nil
}

// Rank returns the rank that the client is attached to.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of ranks in the cluster.
func (c *Client) Size() int { return len(c.peers) }

// Limits returns the limits granted by the daemon. If an operation would exceed them, Start fails with
// mpe.ErrFull.
func (c *Client) Limits() wire.Limits { return c.granted.Limits }

// Peer describes a rank as it was when the client attached.
func (c *Client) Peer(rank int) (mpe.PeerInfo, error) {
	if rank < 0 || rank >= len(c.peers) {
		return mpe.PeerInfo{}, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, mpe.ErrRank,
			len(c.peers)-1)
	}
	return c.peers[rank], nil
}

// Close ends all operations with mpe.ErrClosed and releases the rank. It returns when another program can
// attach to the rank. If ctx ends first, Close closes the connection and returns the error of ctx.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first := !c.leaving
	c.leaving = true
	if c.err == nil {
		c.err = fmt.Errorf("rank %d: %w", c.rank, mpe.ErrClosed)
	}
	c.mu.Unlock()
	if first {
		c.out.PutNow(wire.Raw(wire.AppendHeader(nil, wire.FrameBye, 0)))
	}
	if err := c.Await(ctx, c.ended); err == nil {
		return nil
	}
	c.stream.HangUp()
	c.wait(c.ended)
	return ctxerr.Of(ctx)
}

// enter allocates an operation and assigns its id. The operation is a send, a receive, a probe or a collective
// call.
func (c *Client) enter(req wire.Start, call *collective.Operation) (*Op, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.ops.len() >= c.granted.Limits.Operations {
		c.awaitEnd()
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.ops.len() >= c.granted.Limits.Operations {
		return nil, fmt.Errorf("rank %d: %w: a program may have %d operations in progress", c.rank, mpe.ErrFull,
			c.granted.Limits.Operations)
	}
	op := spareOps.Get().(*Op)
	op.mu.Lock() // the outbox may not have finished with the previous operation
	defer op.mu.Unlock()
	req.ID, req.Length = c.ops.add(op), uint64(len(req.Buf))
	op.c, op.req, op.block, op.got, op.opState = c, req, span{}, 0, opState{queued: true}
	if call != nil {
		if op.call == nil {
			op.call = new(collectiveOp)
		}
		op.call.begin(req.ID, call, len(c.peers))
	}
	if n := len(req.Buf); n >= arenaLeast {
		op.block = c.arena.take(n)
		op.req.Placed, op.req.Place = op.block.n > 0, uint64(op.block.at)
	}
	return op, nil
}

// endPatience is how long a new operation waits for other operations to end if the program has reached its
// limit. Most operations, such as small sends, end sooner.
const endPatience = time.Second

// endsAwaited is the number of operations that awaitEnd waits for. It is large so that not every following call
// has to wait.
const endsAwaited = 1024

// awaitEnd waits until endsAwaited operations have ended, or until none has ended for endPatience. The caller
// must hold the lock, which awaitEnd releases while it waits.
func (c *Client) awaitEnd() {
	for most := c.granted.Limits.Operations; c.err == nil && c.ops.len() >= most-min(endsAwaited, most/2); {
		had := c.ops.ended
		ctx, cancel := context.WithTimeout(context.Background(), endPatience)
		c.mu.Unlock()
		err := c.Await(ctx, c.fewer)
		cancel()
		c.mu.Lock()
		if err != nil && c.ops.ended == had {
			break
		}
	}
	wire.Notify(c.fewer) // wake up other callers that may be waiting
}

// spareOps is a pool of freed operations.
var spareOps = sync.Pool{New: func() any { return &Op{over: make(chan struct{}, 1)} }}

// find returns the operation with the given id, or nil.
func (c *Client) find(id uint64) *Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ops.get(id)
}

// remove removes an operation from the table.
func (c *Client) remove(op *Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops.remove(op.req.ID)
	if c.ops.ended%64 == 0 {
		wire.Notify(c.fewer)
	}
	c.arena.put(op.block)
}
