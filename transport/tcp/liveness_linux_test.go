package tcp

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// shutdown makes a socket accept nothing more from the network. Its host no longer answers for it, as if the
// host were gone.
func shutdown(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: (*unix.SockFilter)(unsafe.Pointer(&drop[0]))})
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// probed returns a Conn of rank 1, of the kind given by name, and a connection from rank 0. packet, sent by
// rank 0, arrives as a packet of the returned kind.
func probed(t *testing.T, name string) (end *transporttest.End, old *net.TCPConn, packet []byte, kind mpe.RxKind) {
	t.Helper()
	cfg := Config{Rank: 1, Map: transporttest.Map(t, 2), Backoff: soon}
	packet, kind = request(0, 1), mpe.RxHeader
	if name != "cloudfpga" {
		cfg.Profile = extended
		p := transporttest.Packet(0, 1, 7, 100)
		packet, kind = append(p.Header[:], p.Payload...), mpe.RxDatagram
	}
	c, err := listen(cfg, name == "extended, polled")
	if err != nil {
		t.Fatal(err)
	}
	if c.CanPoll() != (name == "extended, polled") {
		t.Fatalf("CanPoll is %v", c.CanPoll())
	}
	end = transporttest.Start(t, c)
	old = dial(t, cfg.Map.Addr(0).Addr(), c.LocalAddr())
	want(t, end, mpe.RxConnected, 0)
	write(t, old, packet)
	want(t, end, kind, 0)
	return end, old, packet, kind
}

var candidates = []string{"cloudfpga", "extended", "extended, polled"}

// TestLivingConnectionIsNotReplaced checks that a connection from a rank's address does not replace one that is
// alive. The new connection is closed, and the existing one continues (C2).
func TestLivingConnectionIsNotReplaced(t *testing.T) {
	for _, name := range candidates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, old, packet, kind := probed(t, name)
			from, to := transportAddr(old).Addr(), old.RemoteAddr().(*net.TCPAddr).AddrPort()
			for range 2 {
				otherPeer := dial(t, from, to)
				_, _ = otherPeer.Write(packet) // it may be closed already
				if a := want(t, end, mpe.RxBroken, 0); a.SourceAddr != transportAddr(otherPeer) {
					t.Errorf("%v was refused", a.SourceAddr)
				}
				wantClosed(t, otherPeer)
				write(t, old, packet)
				want(t, end, kind, 0)
			}
			old.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := old.Read(make([]byte, 1)); err == io.EOF {
				t.Error("the old connection was closed")
			}
		})
	}
}

// TestSilentConnectionIsReplaced checks that a connection is replaced if its host does not answer for a second.
// A peer that restarted without closing its connection can therefore connect again (C2).
func TestSilentConnectionIsReplaced(t *testing.T) {
	for _, name := range candidates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, old, packet, kind := probed(t, name)
			shutdown(t, old)
			begun := time.Now()
			fresh := dial(t, transportAddr(old).Addr(), old.RemoteAddr().(*net.TCPAddr).AddrPort())
			write(t, fresh, packet)
			if a := want(t, end, mpe.RxConnected, 0); a.SourceAddr != transportAddr(fresh) {
				t.Errorf("%v is connected", a.SourceAddr)
			}
			if waited := time.Since(begun); waited < answerTime {
				t.Errorf("the old one was given %v", waited)
			}
			want(t, end, kind, 0)
		})
	}
}

// TestClosedConnectionIsReplacedAtOnce checks that a peer that has closed its old connection need not wait,
// whether we have noticed the close or not.
func TestClosedConnectionIsReplacedAtOnce(t *testing.T) {
	c := newPolled(t, 2, nil)
	old := c.dialed(0)
	before, _ := c.peers[0].currentLink()
	old.Close()
	for s, ok := before.kernelState(); ok && s.isOpen; s, ok = before.kernelState() {
		runtime.Gosched() // until the kernel has received the FIN
	}
	fresh := dial(t, c.cfg.Map.Addr(0).Addr(), c.LocalAddr())
	if a := c.want(mpe.RxConnected, 0); a.SourceAddr != transportAddr(fresh) {
		t.Errorf("%v is connected", a.SourceAddr)
	}
}

// TestFewConnectionsWait checks that only a few connections may wait for the verdict on the old one.
func TestFewConnectionsWait(t *testing.T) {
	asked, decide := make(chan struct{}), make(chan struct{})
	m := transporttest.Map(t, 2)
	end := start(t, Config{Rank: 1, Map: m, isAlive: func(*Conn, *link) bool {
		asked <- struct{}{}
		<-decide
		return true
	}})
	old := dial(t, m.Addr(0).Addr(), m.Addr(1))
	want(t, end, mpe.RxConnected, 0)
	dial(t, m.Addr(0).Addr(), m.Addr(1))
	<-asked
	for range maxCandidates + 1 {
		dial(t, m.Addr(0).Addr(), m.Addr(1))
	}
	for range 2 { // two are too many
		want(t, end, mpe.RxBroken, 0)
	}
	for i := range maxCandidates {
		decide <- struct{}{}
		want(t, end, mpe.RxBroken, 0)
		if i < maxCandidates-1 {
			<-asked
		}
	}
	write(t, old, request(0, 1))
	want(t, end, mpe.RxHeader, 0)
}

// TestObserveHeldUp checks that a delay in the thread that asks the kernel does not make a silent connection
// look like one that has answered.
func TestObserveHeldUp(t *testing.T) {
	const held = 50 * time.Millisecond
	now := time.Second
	s, at, ok := observe(func() time.Duration { return now }, func() (connState, bool) {
		s := connState{isOpen: true, silence: now}
		now += held
		return s, true
	})
	if v := classifyLiveness(connState{isOpen: true}, s, at); !ok || v != undecided {
		t.Errorf("%v silent for %v at %v: %v", ok, s.silence, at, v)
	}
}

func TestClassifyLiveness(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct {
		first, silent, elapsed time.Duration
		closed                 bool
		want                   verdict
	}{
		{0, 0, 0, true, dead},
		{time.Hour, time.Hour, 0, false, undecided},
		{time.Hour, 0, 5 * ms, false, undecided}, // the kernel's clock is coarser
		{time.Hour, 0, 20 * ms, false, alive},
		{time.Hour, 500 * ms, 600 * ms, false, alive},
		{time.Hour, time.Hour + 999*ms, 999 * ms, false, undecided},
		{time.Hour, time.Hour + 1000*ms, 1000 * ms, false, dead},
		// Data arrived just before, so the probe is sent only a second later.
		{0, 1000 * ms, 1000 * ms, false, undecided},
		{0, 1999 * ms, 1999 * ms, false, undecided},
		{0, 2000 * ms, 2000 * ms, false, dead},
		{400 * ms, 1999 * ms, 1599 * ms, false, undecided},
		{400 * ms, 2000 * ms, 1600 * ms, false, dead},
		{400 * ms, 900 * ms, 1600 * ms, false, alive},
	} {
		got := classifyLiveness(connState{isOpen: true, silence: x.first}, connState{isOpen: !x.closed, silence: x.silent},
			x.elapsed)
		if got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}
