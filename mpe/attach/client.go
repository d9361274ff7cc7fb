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
	mpe.BasicDevice
	socket string
	stream wire.Stream
	reader *wire.Reader
	outbox *wire.Outbox
	rank   int
	// welcome holds the WELCOME frame that the daemon sent.
	welcome wire.Welcome
	arena   arena
	awaited awaited
	peers   []mpe.PeerInfo

	// abortTimeout equals the constant of the same name, except in tests.
	abortTimeout time.Duration

	// closed is closed after the connection has ended and all operations are done. stop stops the writing goroutine.
	closed chan struct{}
	stop   context.CancelFunc

	group  progress.Group
	source wire.Polled // the source that group polls
	// done is scratch memory for the reading goroutine: the one that polls for the group or, if the stream's Read
	// blocks, a dedicated one.
	done wire.Done

	mu          sync.Mutex
	ops         opTable
	slotsFreed  chan struct{} // wakes up callers that wait for operations to end
	closing     bool
	closeReason error // reason why this side closed the connection
	err         error // reason why no operation can be started
}

var _ mpe.Device = (*Client)(nil)

// attachTimeout limits the time that the daemon may take to grant a rank. It is longer than the time for which the
// daemon waits for a silent program's HELLO.
const attachTimeout = 30 * time.Second

// Dial attaches to a rank of the daemon that listens on socket. If rank is AnyRank, it attaches to any of the
// daemon's ranks. The error is a *RefusedError if the daemon refuses the program, and a *ForeignError if
// CheckServer rejects the daemon.
func Dial(ctx context.Context, socket string, rank int) (*Client, error) {
	return dial(ctx, socket, rank, wire.FlagRings|wire.FlagArena, attachTimeout)
}

// DialSocket is like Dial, but uses no shared memory: frames are sent through the socket.
func DialSocket(ctx context.Context, socket string, rank int) (*Client, error) {
	return dial(ctx, socket, rank, 0, attachTimeout)
}

// dial implements Dial. It sends the given flags in HELLO, and waits no longer than limit for the daemon's answer.
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
	client := newClient(socket, greeting)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = client.requestRank(conn, rank, flags)
	if !stop() { // the deadline has been set, or is about to be
		err = ctxerr.Cause(ctx)
	}
	var stream wire.Polled
	if err == nil {
		stream, err = greeting.Stream(client.welcome.Ring, client.welcome.Arena)
	}
	if err == nil {
		if err = client.startStream(stream); err != nil {
			stream.Close()
		}
	}
	if err != nil {
		greeting.Close()
		return nil, fmt.Errorf("attaching to %s at %s: %w", rankName(rank), socket, rlimit.Descriptor(err))
	}
	return client, nil
}

// DialStream attaches to a rank through a stream that is connected to a daemon's ServeStream. If it fails, it
// closes the stream.
func DialStream(stream wire.Stream, rank int) (*Client, error) {
	client := newClient("a stream", stream)
	err := client.requestRank(stream, rank, 0)
	if err == nil {
		err = client.startStream(stream)
	}
	if err != nil {
		stream.Close()
		return nil, fmt.Errorf("attaching to %s: %w", rankName(rank), err)
	}
	return client, nil
}

func newClient(socket string, from io.Reader) *Client {
	return &Client{socket: socket, reader: wire.NewReader(from), closed: make(chan struct{}),
		slotsFreed:   make(chan struct{}, 1),
		abortTimeout: abortTimeout}
}

// startStream ends the exchange of HELLO and WELCOME and begins to use stream. If the stream can be polled, goroutines
// that wait for an operation read the daemon's frames themselves; see package progress.
func (c *Client) startStream(stream wire.Stream) error {
	c.stream, c.outbox = stream, wire.NewOutbox(stream)
	c.reader.SetSource(stream)
	c.group.Init(nil, c.welcome.Flags&wire.FlagOversubscribed != 0)
	var polled bool
	c.source, polled = stream.(wire.Polled)
	if r, ok := stream.(wire.Rings); ok {
		c.outbox.Rings = r
		c.reader.UseRings(r)
		c.arena.init(r.Arena())
		c.awaited.words = r.Awaited()
		c.group.PollAlone(r.PeerProcessor) // a program may use several ranks, each with its own ring
	} else if polled {
		c.reader.UseSocket()
		c.group.PollAlone(nil)
	}
	// Close the connection only after LingerTimeout, so that the reader first receives what the daemon sent before the
	// write failed.
	c.outbox.OnFailure = func() {
		stream.After(wire.LingerTimeout, stream.HangUp)
		c.group.Watch()
	}
	writing, stop := context.WithCancel(context.Background())
	c.stop = stop
	stream.Go(func() { c.outbox.Run(writing) })
	if !polled {
		stream.Go(func() {
			_, err := c.readFrames()
			c.endAll(err)
		})
		return nil
	}
	if err := c.group.Add(c.source.Descriptor(), (*frameSource)(c), progress.NetworkInterval); err != nil {
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

// requestRank requests the rank from the daemon and reads the answer.
func (c *Client) requestRank(conn io.Writer, rank int, flags uint32) error {
	// A daemon that refuses the program may send REFUSED and close the connection before it has read HELLO.
	_, written := conn.Write(wire.HelloFrame(wire.Hello{Version: wire.Version, Rank: int32(rank), Flags: flags}))
	if err := c.reader.Next(); err != nil {
		return errors.Join(written, err)
	}
	switch c.reader.Type {
	case wire.FrameWelcome:
	case wire.FrameRefused:
		return c.reader.ReadRefused()
	default:
		return wire.Violationf("the daemon answered with %v instead of WELCOME", c.reader.Type)
	}
	w, err := c.reader.ReadWelcome()
	if err != nil {
		return err
	}
	c.rank, c.welcome = int(w.Rank), w
	for rank := range int(w.Size) {
		if err := c.reader.Next(); err != nil {
			return err
		}
		if c.reader.Type != wire.FramePeer {
			return wire.Violationf("%v instead of PEER", c.reader.Type)
		}
		p, err := c.reader.ReadPeer(rank)
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
func (c *Client) Limits() wire.Limits { return c.welcome.Limits }

// Peer describes a rank of the cluster. The description dates from the time when the client attached.
func (c *Client) Peer(rank int) (mpe.PeerInfo, error) {
	if rank < 0 || rank >= len(c.peers) {
		return mpe.PeerInfo{}, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, mpe.ErrRank,
			len(c.peers)-1)
	}
	return c.peers[rank], nil
}

// Close ends all operations with mpe.ErrClosed and releases the rank. It waits until another program could attach to
// the rank. If ctx ends first, Close closes the connection and returns the error of ctx.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first := !c.closing
	c.closing = true
	if c.err == nil {
		c.err = fmt.Errorf("rank %d: %w", c.rank, mpe.ErrClosed)
	}
	c.mu.Unlock()
	if first {
		c.outbox.Send(wire.RawFrame(wire.AppendHeader(nil, wire.FrameBye, 0)))
	}
	if err := c.Await(ctx, c.closed); err == nil {
		return nil
	}
	c.stream.HangUp()
	c.awaitForever(c.closed)
	return ctxerr.Cause(ctx)
}

// newOp allocates an operation and assigns its id. The argument call is nil unless the operation is a collective call.
func (c *Client) newOp(req wire.Start, call *collective.Operation) (*Op, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && c.ops.len() >= c.welcome.Limits.Operations {
		c.awaitFreeSlot()
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.ops.len() >= c.welcome.Limits.Operations {
		return nil, fmt.Errorf("rank %d: %w: a program may have %d operations in progress", c.rank, mpe.ErrFull,
			c.welcome.Limits.Operations)
	}
	op := opPool.Get().(*Op)
	op.mu.Lock() // the outbox may not have finished with the previous operation
	defer op.mu.Unlock()
	req.ID, req.Length = c.ops.add(op), uint64(len(req.Buf))
	op.client, op.req, op.block, op.bytesReceived, op.opState = c, req, span{}, 0, opState{isQueued: true}
	if call != nil {
		if op.call == nil {
			op.call = new(collectiveOp)
		}
		op.call.init(req.ID, call, len(c.peers))
	}
	if n := len(req.Buf); n >= minArenaPayload {
		op.block = c.arena.alloc(n)
		op.req.InArena, op.req.ArenaOffset = op.block.length > 0, uint64(op.block.offset)
	}
	return op, nil
}

// opEndTimeout limits how long a new operation waits for others to complete when the program has reached its limit on
// operations. Most operations, such as small sends, complete sooner.
const opEndTimeout = time.Second

// minEnded is the number of completions for which awaitFreeSlot waits. It is large so that the operations that follow
// do not have to wait as well.
const minEnded = 1024

// awaitFreeSlot waits until minEnded operations are done, or until opEndTimeout passes without a completion. The caller
// must hold the lock, which awaitFreeSlot releases while it waits.
func (c *Client) awaitFreeSlot() {
	for most := c.welcome.Limits.Operations; c.err == nil && c.ops.len() >= most-min(minEnded, most/2); {
		had := c.ops.removedCount
		ctx, cancel := context.WithTimeout(context.Background(), opEndTimeout)
		c.mu.Unlock()
		err := c.Await(ctx, c.slotsFreed)
		cancel()
		c.mu.Lock()
		if err != nil && c.ops.removedCount == had {
			break
		}
	}
	wire.Notify(c.slotsFreed) // wake up other callers that may be waiting
}

// opPool is a pool of freed operations.
var opPool = sync.Pool{New: func() any { return &Op{done: make(chan struct{}, 1)} }}

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
	if c.ops.removedCount%64 == 0 {
		wire.Notify(c.slotsFreed)
	}
	c.arena.release(op.block)
}
