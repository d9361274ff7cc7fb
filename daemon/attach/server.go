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

// Ranks are the ranks that a daemon offers. Its methods are called concurrently.
type Ranks interface {
	// Hosts lists the ranks that may be attached to, in rank order.
	Hosts() []int
	// Device returns one of them. The server never closes it. The error says
	// why another rank is not offered, and wraps mpe.ErrRank.
	Device(rank int) (mpe.Device, error)
}

// Options configure a server beside its ranks. The zero value has the defaults.
type Options struct {
	// Access returns who may attach to one of Hosts, beside root and the daemon's own user.
	// It is called concurrently. Nil allows no others.
	Access func(rank int) Access
	// Limits are granted to each program. 0 is 65,536 operations and 256 MiB.
	Limits wire.Limits
	// Memory is how many bytes the operations of all programs may take. 0 is 1 GiB.
	Memory int64
	// Oversubscribed says that the host has more ranks and programs than cores:
	// goroutines that poll, here and in the programs, let other processes run.
	Oversubscribed bool
	// HelloTime is how long a program may take to say HELLO and to read the answer. 0 is 5 s.
	HelloTime time.Duration
	// Log is called with every event, concurrently; nil is not called.
	Log func(Event)
	// Explain completes the error of an operation with what the daemon knows about its cause. It is called
	// concurrently; nil leaves errors as they are.
	Explain func(error) error
}

const (
	defaultOperations = 1 << 16
	defaultBytes      = 256 << 20
	defaultMemory     = 1 << 30
	defaultHelloTime  = 5 * time.Second
	// acceptPause comes after a failure to accept, as when the process has no more file descriptors.
	acceptPause = 100 * time.Millisecond
	// maxGreeting is how many connections may be without a rank at once.
	maxGreeting = 64
)

// Server gives ranks to programs that connect.
type Server struct {
	ranks Ranks
	opts  Options
	uid   int

	begun  sync.Once
	memory memory
	// greeting has a value for each connection that has no rank yet.
	greeting chan struct{}

	mu       sync.Mutex
	attached map[int]*session
}

// NewServer returns a server of the given ranks.
func NewServer(ranks Ranks, opts Options) *Server {
	// At most what WELCOME and a slice can carry.
	opts.Limits.Operations = min(cmp.Or(max(opts.Limits.Operations, 0), defaultOperations), math.MaxInt32)
	opts.Limits.Bytes = min(cmp.Or(max(opts.Limits.Bytes, 0), defaultBytes), math.MaxInt)
	opts.Memory = cmp.Or(max(opts.Memory, 0), defaultMemory)
	opts.HelloTime = cmp.Or(max(opts.HelloTime, 0), defaultHelloTime)
	if opts.Access == nil {
		opts.Access = func(int) Access { return Access{} }
	}
	if opts.Log == nil {
		opts.Log = func(Event) {}
	}
	if opts.Explain == nil {
		opts.Explain = func(err error) error { return err }
	}
	return &Server{ranks: ranks, opts: opts, uid: os.Geteuid(), greeting: make(chan struct{}, maxGreeting), attached: make(map[int]*session)}
}

// begin divides the memory: now it is known of which ranks.
func (s *Server) begin() {
	m, programs := &s.memory, int64(max(len(s.ranks.Hosts()), 1))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit, m.share = s.opts.Memory, min(maxShare, s.opts.Memory/shareParts/programs)
	m.common = m.limit - programs*m.share
	s.opts.Limits.Bytes = min(s.opts.Limits.Bytes, m.common+m.share-operationLen)
}

// Serve lets programs attach through l, which listens on a Unix stream socket and which it closes, until ctx is done.
// It returns nil then, when every program has been disconnected and its operations have been canceled.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.begun.Do(s.begin)
	var reserve rlimit.Reserve // spent when the process has no other descriptor left
	reserve.Open()
	defer reserve.Close()
	ctx, cancel := context.WithCancel(ctx)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		select {
		case s.greeting <- struct{}{}:
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
			<-s.greeting
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

// refuseNext reports to the next program why it was not accepted.
func refuseNext(l *net.UnixListener, reason error) {
	if l.SetDeadline(time.Now().Add(acceptPause)) != nil {
		return
	}
	conn, err := l.Accept()
	_ = l.SetDeadline(time.Time{}) // it was possible before
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(wire.FarewellTime))
	_, _ = conn.Write(wire.RefusedFrame(wire.Refuse(wire.Failed, "%v", reason))) // it may have gone
}

// serve serves one program.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	// It cannot fail on a socket that is open.
	_ = conn.SetDeadline(time.Now().Add(s.opts.HelloTime))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	var ses *session
	who, err := wire.CredentialsOf(conn)
	if err != nil {
		err = wire.Refuse(wire.Permission, "%v", err)
	} else {
		ses, err = s.greet(conn, who, func(ses *session, w wire.Welcome, peers []byte) error {
			return s.welcome(ses, w, peers, conn)
		})
	}
	stop()
	<-s.greeting
	if err != nil {
		if ctx.Err() != nil {
			err = wire.Refuse(wire.Closing, "the daemon is shutting down")
		}
		_ = conn.SetWriteDeadline(time.Now().Add(wire.FarewellTime))
		s.refuse(conn, err)
		return
	}
	ses.run(ctx)
}

// welcome answers a program, and hands memory over if it is asked for, and there is some: otherwise frames go through
// the socket. It closes conn unless it fails.
func (s *Server) welcome(ses *session, w wire.Welcome, peers []byte, conn *net.UnixConn) (err error) {
	if w.Ring > 0 {
		if o, err := wire.NewOffer(int(w.Arena)); err == nil {
			r, err := o.Stream(conn, append(wire.AppendWelcome(nil, w), peers...))
			if err != nil {
				return err
			}
			p, err := newPolling(r, ses, s.opts.Oversubscribed)
			if err != nil {
				r.Close()
			}
			s.mu.Lock() // the program is attached already
			defer s.mu.Unlock()
			ses.polling, ses.stream = p, r
			return err
		}
		w.Ring, w.Arena = 0, 0
	}
	if _, err = conn.Write(append(wire.AppendWelcome(nil, w), peers...)); err == nil {
		ses.stream, err = newSocket(conn, s.opts.Oversubscribed)
	}
	return err
}

// ServeStream serves one program, of which the caller knows who runs it, until it is gone or ctx is done.
func (s *Server) ServeStream(ctx context.Context, stream wire.Stream, who wire.Credentials) {
	s.begun.Do(s.begin)
	ses, err := s.greet(stream, who, func(ses *session, w wire.Welcome, peers []byte) error {
		w.Ring, w.Arena, ses.stream = 0, 0, stream
		_, err := stream.Write(append(wire.AppendWelcome(nil, w), peers...))
		return err
	})
	if err != nil {
		s.refuse(stream, err)
		stream.Close()
		return
	}
	ses.run(ctx)
}

// refuse answers a program that may not attach, if it has not gone, and logs that.
func (s *Server) refuse(to io.Writer, err error) {
	answer, ok := asRefusal(err)
	limit, limited := errors.AsType[*rlimit.Error](rlimit.Descriptor(err))
	switch {
	case ok:
	case limited:
		answer = wire.Refuse(wire.Failed, "%v", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		answer = wire.Refuse(wire.Late, "no HELLO came within %v", s.opts.HelloTime)
	default: // it has closed the connection
		return
	}
	s.opts.Log(Event{Kind: EventRefused, Rank: wire.AnyRank, Err: answer})
	_, _ = to.Write(wire.RefusedFrame(answer)) // it may have gone, and then it need not know
}

// asRefusal returns the answer to a program whose fault an error is, or an error that is an answer.
func asRefusal(err error) (answer *wire.RefusedError, ok bool) {
	if broken, ok := errors.AsType[*wire.ProtocolError](err); ok {
		return wire.Refuse(wire.Violation, "%v", broken), true
	}
	return errors.AsType[*wire.RefusedError](err)
}

// greet reads HELLO, gives a program its rank, and has it welcomed: by WELCOME, with the memory that it asks for, and
// the PEERs.
func (s *Server) greet(
	from io.Reader, who wire.Credentials, welcome func(*session, wire.Welcome, []byte) error,
) (*session, error) {
	hosts := s.ranks.Hosts()
	// Without a host rank the answer to HELLO says so.
	if len(hosts) > 0 && len(s.allowed(who, hosts)) == 0 {
		return nil, s.denied(who, wire.AnyRank)
	}
	in := wire.NewReader(from)
	h, err := in.ReadHello()
	switch {
	case err != nil:
		return nil, err
	case h.Flags&^(wire.FlagRings|wire.FlagArena) != 0:
		return nil, wire.Violationf("HELLO with flags %#x: there are bits 0 and 1", h.Flags)
	}
	ses := newSession(s, in, who)
	if err := s.claim(ses, int(h.Rank)); err != nil {
		return nil, err
	}
	w := wire.Welcome{
		Version: wire.Version, Rank: uint32(ses.rank), Size: uint32(ses.dev.Size()), Chunk: wire.ChunkLen,
		Limits: s.opts.Limits, Asked: h.Flags&wire.FlagArena != 0,
	}
	if s.opts.Oversubscribed {
		w.Flags |= wire.FlagOversubscribed
	}
	if h.Flags&wire.FlagRings != 0 {
		w.Ring = wire.RingLen
		if w.Asked {
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

// allowed returns those of the ranks that a program may attach to.
func (s *Server) allowed(who wire.Credentials, ranks []int) []int {
	var allowed []int
	for _, rank := range ranks {
		if s.opts.Access(rank).Allows(who, s.uid) {
			allowed = append(allowed, rank)
		}
	}
	return allowed
}

// denied returns the error of a program whose user may not attach to a rank, or to AnyRank.
func (s *Server) denied(who wire.Credentials, rank int) error {
	what, where := "any rank", "a rank"
	if rank != wire.AnyRank {
		what = fmt.Sprintf("rank %d", rank)
		where = what
	}
	return wire.Refuse(wire.Permission, "user %d (group %d) may not attach to %s of the daemon, which runs as user %d: add the user or one of its groups to allow of %s in the daemon's configuration",
		who.UID, who.GID, what, s.uid, where)
}

// claim gives a rank to a session.
func (s *Server) claim(ses *session, rank int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := s.ranks.Hosts()
	if len(hosts) == 0 && rank == wire.AnyRank {
		return wire.Refuse(wire.NoRank, "the daemon has no host ranks to attach to")
	}
	allowed := s.allowed(ses.who, hosts)
	if rank == wire.AnyRank {
		i := slices.IndexFunc(allowed, func(r int) bool { return s.attached[r] == nil })
		switch {
		case len(allowed) == 0:
			return s.denied(ses.who, wire.AnyRank)
		case i < 0:
			return wire.Refuse(wire.Busy, "every host rank is taken: %s", s.holders(allowed))
		}
		rank = allowed[i]
	}
	dev, err := s.ranks.Device(rank)
	switch {
	case err != nil:
		return wire.Refuse(wire.NoRank, "%v (ranks to attach to: %v)", err, allowed)
	case !slices.Contains(allowed, rank):
		return s.denied(ses.who, rank)
	case s.attached[rank] != nil:
		return wire.Refuse(wire.Busy, "another program is attached: %s", s.holders([]int{rank}))
	}
	ses.rank, ses.dev, ses.since = rank, dev, time.Now()
	s.attached[rank] = ses
	return nil
}

// holders says who has the given ranks, all of which are taken.
func (s *Server) holders(ranks []int) string {
	var b strings.Builder
	for _, rank := range ranks {
		who := s.attached[rank].who
		fmt.Fprintf(&b, ", rank %d by pid %d of user %d", rank, who.PID, who.UID)
	}
	return strings.TrimPrefix(b.String(), ", ")
}

// programDevice is a device that keeps something of a program, of its collective calls and of messages under way, which
// is not for the next program.
type programDevice interface{ ProgramEnded(clean bool) }

// release makes a session's rank free. Clean says that its program has detached.
func (s *Server) release(ses *session, clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.attached, ses.rank)
	if d, ok := ses.dev.(programDevice); ok {
		d.ProgramEnded(clean)
	}
}

// returnKept has all sessions return the memory that they keep.
func (s *Server) returnKept() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.attached))
	s.mu.Unlock()
	for _, ses := range all {
		ses.returnKept()
	}
}
