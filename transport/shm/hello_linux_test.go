package shm

import (
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestHostileHello checks that garbage on the socket has no effect, and that invalid memory is rejected.
func TestHostileHello(t *testing.T) {
	m := transporttest.Map(t, 2)
	c := listen(t, Config{Rank: 1, Map: m})
	bell, doorbell, shared, whole := handles(t)
	short := memory(t, pageLen)
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unsealed)
	if err := unix.Ftruncate(unsealed, sharedLen); err != nil {
		t.Fatal(err)
	}
	link := hello{purpose: requestLink, src: 0, dst: 1, ring: MinRing}
	with := func(h hello, handles ...int) func(*net.UnixConn) error {
		h.handles = handles
		return func(conn *net.UnixConn) error { return sendHello(conn, h) }
	}
	raw := func(b string) func(*net.UnixConn) error {
		return func(conn *net.UnixConn) error {
			_, err := conn.Write([]byte(b))
			return err
		}
	}
	from := func(change func(*hello)) hello {
		h := link
		change(&h)
		return h
	}
	for name, say := range map[string]func(*net.UnixConn) error{
		"nothing":         func(*net.UnixConn) error { return nil },
		"too short":       raw("zrlshm01"),
		"too long":        raw(strings.Repeat("zrlshm01", 100)),
		"no magic":        raw(strings.Repeat("x", helloLen)),
		"no purpose":      with(from(func(h *hello) { h.purpose = 0 })),
		"other purpose":   with(from(func(h *hello) { h.purpose = requestCall + 1 })),
		"an answer":       with(from(func(h *hello) { h.purpose = grantLink }), bell, doorbell, shared),
		"no handles":      with(link),
		"few handles":     with(link, bell, doorbell, shared),
		"many handles":    with(link, bell, doorbell, shared, whole, whole),
		"odd ring":        with(from(func(h *hello) { h.ring = MinRing + 64 }), bell, doorbell, shared, whole),
		"no bell":         with(link, doorbell, doorbell, shared, whole),
		"short memory":    with(link, bell, doorbell, shared, short),
		"unsealed memory": with(link, bell, doorbell, shared, unsealed),
		"short doorbell":  with(link, bell, unsealed, shared, whole),
		"short buffer":    with(link, bell, doorbell, short, whole),
		"unsealed buffer": with(link, bell, doorbell, unsealed, whole),
		"from ourselves":  with(from(func(h *hello) { h.src = 1 }), bell, doorbell, shared, whole),
		"from nobody":     with(from(func(h *hello) { h.src = 1 << 31 }), bell, doorbell, shared, whole),
		"to another":      with(from(func(h *hello) { h.dst = 0 }), bell, doorbell, shared, whole),
	} {
		conn := connect(t, m, 1)
		if err := say(conn); err != nil {
			t.Fatal(name, err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(name, err)
		}
		if n, err := conn.Read(make([]byte, 100)); n > 0 || err == nil {
			t.Errorf("%s: %d bytes for an answer", name, n)
		}
		conn.Close()
		if linked, _ := c.Link(0); linked {
			t.Errorf("%s: there is a link", name)
		}
	}
	end := transporttest.Start(t, c)
	transporttest.Start(t, listen(t, Config{Rank: 0, Map: m})).WaitConnected(t, 1)
	end.WaitConnected(t, 0)
}

// connect connects to the socket of a rank.
func connect(t *testing.T, m *rankmap.Map, rank int) *net.UnixConn {
	t.Helper()
	place, path, err := newSocketDir(&Config{Rank: rank, Map: m})
	if err == nil {
		place.dir, err = rendezvous.Open(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer place.dir.Close()
	conn, err := place.connect(&peer{rank: rank, addr: m.Addr(rank)})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// handles returns the handles of a link with the shortest ring.
func handles(t *testing.T) (bell, doorbell, shared, link int) {
	t.Helper()
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(bell) })
	return bell, memory(t, doorbellLen), memory(t, sharedLen), memory(t, linkLen(MinRing))
}

// memory returns the descriptor of n bytes of shared memory.
func memory(t *testing.T, n int) int {
	t.Helper()
	fd, err := sharedmem.Create(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// otherVersion returns a hello of rank 0 to rank 1 in another version.
func otherVersion() []byte {
	b := append([]byte("zrlshm03"), make([]byte, helloLen-len(helloMagic))...)
	binary.LittleEndian.PutUint32(b[len(helloMagic):], uint32(requestLink))
	binary.LittleEndian.PutUint32(b[len(helloMagic)+8:], 1)
	return b
}

// TestOtherVersion checks that a rank of another version is rejected, and that both sides learn both versions.
func TestOtherVersion(t *testing.T) {
	m := transporttest.Map(t, 2)
	listen(t, Config{Rank: 1, Map: m})
	conn := connect(t, m, 1)
	defer conn.Close()
	other := otherVersion()
	if _, err := conn.Write(other); err != nil {
		t.Fatal(err)
	}
	answer, err := receiveHello(conn)
	if err != nil || answer.src != 1 || answer.dst != 0 {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	err = new(hello).parse(other, false)
	if !errors.Is(err, errVersion) || !strings.Contains(err.Error(), "zrlshm03") ||
		!strings.Contains(err.Error(), helloMagic) {
		t.Errorf("the recorded error is %v", err)
	}
}
