package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// Ranks provides the ranks that a daemon offers to programs. Its methods may be called concurrently.
type Ranks interface {
	// Hosts lists the ranks to which programs may attach, in rank order.
	Hosts() []int
	// Device returns the device of a rank. The server never closes the device. If the daemon does not offer the rank to
	// programs, the error wraps mpe.ErrRank and states the reason.
	Device(rank int) (mpe.Device, error)
}

// Options configures a Server. The zero value selects the defaults.
type Options struct {
	// Access returns the users and groups that may attach to a host rank, in addition to root and the daemon's own
	// user. It may be called concurrently. If Access is nil, only root and the daemon's user may attach.
	Access func(rank int) Access
	// Limits limits the operations of each program. Zero fields select 65,536 operations and 256 MiB.
	Limits wire.Limits
	// Memory is the maximum number of bytes that the operations of all programs may use together. 0 selects 1 GiB.
	Memory int64
	// Oversubscribed means that the host runs more ranks and programs than it has cores. Polling goroutines, in the
	// daemon and in programs, then yield to other processes.
	Oversubscribed bool
	// HelloTimeout is the time limit for a program to send HELLO and to read the answer. 0 selects 5 s.
	HelloTimeout time.Duration
	// Log, if non-nil, is called for every event, possibly concurrently.
	Log func(Event)
	// Explain adds what the daemon knows about the cause of a failed operation to its error. It may be called
	// concurrently. If Explain is nil, programs receive errors unchanged.
	Explain func(error) error
}

const (
	defaultOperations = 1 << 16
	defaultBytes      = 256 << 20
	defaultMemory     = 1 << 30
	helloTimeout      = 5 * time.Second
	// acceptPause is the pause after a connection could not be accepted, which may be due to a lack of file
	// descriptors.
	acceptPause = 100 * time.Millisecond
	// maxUnassigned is the maximum number of connections without an assigned rank.
	maxUnassigned = 64
)

// Server lets programs attach to ranks.
type Server struct {
	ranks Ranks
	opts  Options
	uid   int

	initOnce sync.Once
	memory   memoryPool
	// greetSlots holds one value for each connection without an assigned rank.
	greetSlots chan struct{}

	mu       sync.Mutex
	sessions map[int]*session
}

// NewServer returns a server for the given ranks.
func NewServer(ranks Ranks, opts Options) *Server {
	// Limit the values to the ranges supported by the fields of the WELCOME frame and by slice lengths.
	opts.Limits.Operations = min(cmp.Or(max(opts.Limits.Operations, 0), defaultOperations), math.MaxInt32)
	opts.Limits.Bytes = min(cmp.Or(max(opts.Limits.Bytes, 0), defaultBytes), math.MaxInt)
	opts.Memory = cmp.Or(max(opts.Memory, 0), defaultMemory)
	opts.HelloTimeout = cmp.Or(max(opts.HelloTimeout, 0), helloTimeout)
	if opts.Access == nil {
		opts.Access = func(int) Access { return Access{} }
	}
	if opts.Log == nil {
		opts.Log = func(Event) {}
	}
	if opts.Explain == nil {
		opts.Explain = func(err error) error { return err }
	}
	return &Server{ranks: ranks, opts: opts, uid: os.Geteuid(), greetSlots: make(chan struct{}, maxUnassigned),
		sessions: make(map[int]*session)}
}

// divideMemory computes the share of each program. It must not be called before the ranks are known.
func (s *Server) divideMemory() {
	m, programs := &s.memory, int64(max(len(s.ranks.Hosts()), 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit, m.perProgram = s.opts.Memory, min(maxShare, s.opts.Memory/shareParts/programs)
	m.commonLeft = m.limit - programs*m.perProgram
	s.opts.Limits.Bytes = min(s.opts.Limits.Bytes, m.commonLeft+m.perProgram-operationCost)
}

// Serve accepts programs through l, a listener on a Unix stream socket, until ctx is done. It then disconnects all
// programs, cancels their operations and returns nil. Serve closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.initOnce.Do(s.divideMemory)
	var reserve rlimit.Reserve // a descriptor to release when the process runs out of them
	reserve.Open()
	defer reserve.Close()
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		select {
		case s.greetSlots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			err = rlimit.Descriptor(err)
			s.opts.Log(Event{Kind: EventFailed, Rank: wire.AnyRank, Err: err})
			if sockets, ok := l.(*net.UnixListener); ok && rlimit.Is(err) {
				reserve.Spend(func() { refuseNext(sockets, err) })
			}
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			<-s.greetSlots
			continue
		}
		unix, ok := conn.(*net.UnixConn)
		if !ok {
			conn.Close()
			return fmt.Errorf("attach: %v is not a Unix socket", l.Addr())
		}
		conns.Go(func() { s.serve(ctx, unix) })
	}
}

// refuseNext accepts the next connection, sends reason to the program, and closes the connection.
func refuseNext(l *net.UnixListener, reason error) {
	if l.SetDeadline(time.Now().Add(acceptPause)) != nil {
		return
	}
	conn, err := l.Accept()
	_ = l.SetDeadline(time.Time{}) // cannot fail, because setting the deadline above succeeded
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(wire.LingerTimeout))
	_, _ = conn.Write(wire.RefusedFrame(wire.NewRefusal(wire.Failed, "%v", reason))) // the program may be gone
}

// serve serves one program.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	// SetDeadline cannot fail on an open socket.
	_ = conn.SetDeadline(time.Now().Add(s.opts.HelloTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	var ses *session
	who, err := wire.CredentialsOf(conn)
	if err != nil {
		err = wire.NewRefusal(wire.Permission, "%v", err)
	} else {
		ses, err = s.acceptHello(conn, who, func(ses *session, w wire.Welcome, peers []byte) error {
			return s.sendWelcome(ses, w, peers, conn)
		})
	}
	stop()
	<-s.greetSlots
	if err != nil {
		if ctx.Err() != nil {
			err = wire.NewRefusal(wire.Closing, "the daemon is shutting down")
		}
		_ = conn.SetWriteDeadline(time.Now().Add(wire.LingerTimeout))
		s.rejectProgram(conn, err)
		return
	}
	ses.run(ctx)
}

// sendWelcome answers a program's HELLO. If the program requested shared memory and it is available, sendWelcome hands
// it over; otherwise, frames pass through the socket. On success, conn is closed.
func (s *Server) sendWelcome(ses *session, welcome wire.Welcome, peers []byte, conn *net.UnixConn) (err error) {
	if welcome.Ring > 0 {
		if o, err := wire.NewOffer(int(welcome.Arena)); err == nil {
			rings, err := o.Stream(conn, append(wire.AppendWelcome(nil, welcome), peers...))
			if err != nil {
				return err
			}
			sess, err := newPolling(rings, ses, s.opts.Oversubscribed)
			if err != nil {
				rings.Close()
			}
			s.mu.Lock() // AttachedPrograms may already access the session
			defer s.mu.Unlock()
			ses.polling, ses.stream = sess, rings
			return err
		}
		welcome.Ring, welcome.Arena = 0, 0
	}
	if _, err = conn.Write(append(wire.AppendWelcome(nil, welcome), peers...)); err == nil {
		ses.stream, err = newSocketStream(conn, s.opts.Oversubscribed)
	}
	return err
}

// ServeStream serves a single program with credentials who, until it is gone or ctx is done.
func (s *Server) ServeStream(ctx context.Context, stream wire.Stream, who wire.Credentials) {
	s.initOnce.Do(s.divideMemory)
	ses, err := s.acceptHello(stream, who, func(ses *session, w wire.Welcome, peers []byte) error {
		w.Ring, w.Arena, ses.stream = 0, 0, stream
		_, err := stream.Write(append(wire.AppendWelcome(nil, w), peers...))
		return err
	})
	if err != nil {
		s.rejectProgram(stream, err)
		stream.Close()
		return
	}
	ses.run(ctx)
}

// rejectProgram logs that a program was refused and, if the program is still connected, sends it the reason.
func (s *Server) rejectProgram(to io.Writer, err error) {
	answer, ok := asRefusal(err)
	limit, limited := errors.AsType[*rlimit.Error](rlimit.Descriptor(err))
	switch {
	case ok:
	case limited:
		answer = wire.NewRefusal(wire.Failed, "%v", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		answer = wire.NewRefusal(wire.Late, "no HELLO received within %v", s.opts.HelloTimeout)
	default: // the program closed the connection
		return
	}
	s.opts.Log(Event{Kind: EventRefused, Rank: wire.AnyRank, Err: answer})
	_, _ = to.Write(wire.RefusedFrame(answer)) // fails only if the program is gone
}

// asRefusal converts a protocol error to a refusal that can be sent to the program. If err already is a refusal,
// asRefusal returns it unchanged.
func asRefusal(err error) (answer *wire.RefusedError, ok bool) {
	if broken, ok := errors.AsType[*wire.ProtocolError](err); ok {
		return wire.NewRefusal(wire.Violation, "%v", broken), true
	}
	return errors.AsType[*wire.RefusedError](err)
}

// acceptHello reads HELLO and assigns a rank to the program. It then calls welcome to send WELCOME, any requested
// shared memory, and the PEER frames.
func (s *Server) acceptHello(
	from io.Reader, who wire.Credentials, welcome func(*session, wire.Welcome, []byte) error,
) (*session, error) {
	hosts := s.ranks.Hosts()
	// Without host ranks, skip this check: the answer to HELLO reports that there are none to attach to.
	if len(hosts) > 0 && len(s.allowedRanks(who, hosts)) == 0 {
		return nil, s.permissionError(who, wire.AnyRank)
	}
	in := wire.NewReader(from)
	hello, err := in.ReadHello()
	switch {
	case err != nil:
		return nil, err
	case hello.Flags&^(wire.FlagRings|wire.FlagArena) != 0:
		return nil, wire.Violationf("HELLO with flags %#x: only bits 0 and 1 are defined", hello.Flags)
	}
	ses := newSession(s, in, who)
	if err := s.assignRank(ses, int(hello.Rank)); err != nil {
		return nil, err
	}
	w := wire.Welcome{
		Version: wire.Version, Rank: uint32(ses.rank), Size: uint32(ses.dev.Size()), Chunk: wire.ChunkLen,
		Limits: s.opts.Limits, HasArena: hello.Flags&wire.FlagArena != 0,
	}
	if s.opts.Oversubscribed {
		w.Flags |= wire.FlagOversubscribed
	}
	if hello.Flags&wire.FlagRings != 0 {
		w.Ring = wire.RingLen
		if w.HasArena {
			w.Arena = wire.ArenaLen
		}
	}
	peers, err := ses.describePeers()
	if err == nil {
		err = welcome(ses, w, peers)
	}
	if err != nil {
		s.release(ses, true)
	}
	return ses, err
}

// allowedRanks returns the given ranks to which a program may attach.
func (s *Server) allowedRanks(who wire.Credentials, ranks []int) []int {
	var allowed []int
	for _, rank := range ranks {
		if s.opts.Access(rank).Allows(who, s.uid) {
			allowed = append(allowed, rank)
		}
	}
	return allowed
}

// permissionError returns the error for a program without permission to attach to rank, which may be AnyRank.
func (s *Server) permissionError(who wire.Credentials, rank int) error {
	what, where := "any rank", "a rank"
	if rank != wire.AnyRank {
		what = fmt.Sprintf("rank %d", rank)
		where = what
	}
	return wire.NewRefusal(wire.Permission, "user %d (group %d) may not attach to %s of the daemon, which runs as user "+
		"%d: add the user or one of its groups to allow of %s in the daemon's configuration",
		who.UID, who.GID, what, s.uid, where)
}

// assignRank assigns a rank to a session.
func (s *Server) assignRank(ses *session, rank int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := s.ranks.Hosts()
	if len(hosts) == 0 && rank == wire.AnyRank {
		return wire.NewRefusal(wire.NoRank, "the daemon has no host ranks to attach to")
	}
	allowed := s.allowedRanks(ses.credentials, hosts)
	if rank == wire.AnyRank {
		i := slices.IndexFunc(allowed, func(r int) bool { return s.sessions[r] == nil })
		switch {
		case len(allowed) == 0:
			return s.permissionError(ses.credentials, wire.AnyRank)
		case i < 0:
			return wire.NewRefusal(wire.Busy, "every host rank is in use: %s", s.describeHolders(allowed))
		}
		rank = allowed[i]
	}
	dev, err := s.ranks.Device(rank)
	switch {
	case err != nil:
		return wire.NewRefusal(wire.NoRank, "%v (ranks to attach to: %v)", err, allowed)
	case !slices.Contains(allowed, rank):
		return s.permissionError(ses.credentials, rank)
	case s.sessions[rank] != nil:
		return wire.NewRefusal(wire.Busy, "another program is attached: %s", s.describeHolders([]int{rank}))
	}
	ses.rank, ses.dev, ses.attachedAt = rank, dev, time.Now()
	s.sessions[rank] = ses
	return nil
}

// describeHolders describes the programs attached to the given ranks. A program must be attached to each of them.
func (s *Server) describeHolders(ranks []int) string {
	var b strings.Builder
	for _, rank := range ranks {
		who := s.sessions[rank].credentials
		fmt.Fprintf(&b, ", rank %d by pid %d of user %d", rank, who.PID, who.UID)
	}
	return strings.TrimPrefix(b.String(), ", ")
}

// programDevice is a device that holds state of the attached program, namely about its collective calls and its
// messages in flight. This state must be reset when the program detaches, because the next program must not inherit it.
type programDevice interface{ ProgramEnded(clean bool) }

// release releases a session's rank. The argument clean means that the program detached cleanly.
func (s *Server) release(ses *session, clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ses.rank)
	if d, ok := ses.dev.(programDevice); ok {
		d.ProgramEnded(clean)
	}
}

// freeSpares frees the buffers that sessions keep for reuse.
func (s *Server) freeSpares() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	for _, ses := range all {
		ses.freeSpares()
	}
}
