package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestMemoryThatNeverComes checks that a peer that exposes memory which never becomes resident costs the
// receiver only the link to that peer. The receiver is a separate process, because a stuck process cannot do
// anything else.
func TestMemoryThatNeverComes(t *testing.T) {
	exposing(t)
	sizes := []string{hostileAdvert, hostileDescriptor}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		t.Run(size, func(t *testing.T) {
			m := transporttest.Map(t, 3)
			addrs := fmt.Sprint(m.Addr(0), ",", m.Addr(1), ",", m.Addr(2))
			_, receiver := startVictim(t, addrs, liedTo)
			startVictim(t, addrs, size)
			said := make(chan string, 1)
			go func() {
				line, err := receiver.ReadString('\n')
				said <- strings.TrimSpace(fmt.Sprint(line, errText(err)))
			}()
			select {
			case line := <-said:
				switch {
				case line == "well":
				case strings.HasPrefix(line, noFaults) && os.Getenv("CI") != "true":
					t.Skip(line)
				default:
					t.Fatal(line)
				}
			case <-time.After(transporttest.Timeout + 2*copyTimeout):
				t.Fatal("the receiver does nothing any more")
			}
		})
	}
}

const (
	// liedTo runs ranks 0 and 2. The other two roles run rank 1, whose memory never becomes resident: hostileAdvert
	// sends a message that is advertised as a whole, and hostileDescriptor sends one that is not.
	liedTo, hostileAdvert, hostileDescriptor = "target", "hostile advert", "hostile descriptor"
	// liarSize is the length of the first message. The second is twice as long.
	liarSize = maxSingleCopy
	// noFaults is the beginning of the output if the system does not let us handle page faults.
	noFaults = "no userfaultfd: "
)

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// engineOf returns the engine of a rank and its Conn.
func engineOf(m *rankmap.Map, rank int) (*Conn, *mpe.Engine, error) {
	c, err := Listen(Config{Rank: rank, Map: m})
	if err != nil {
		return nil, nil, err
	}
	cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, m.Size())}
	for peer := range cfg.Peers {
		x := &extended.Config{MaxPayload: MaxPayload, Seed: uint64(10*rank + peer + 1), HeaderChecksum: true}
		x.Window, x.WindowBytes = Window(DefaultRing(m.Size()))
		cfg.Peers[peer] = mpe.Peer{Extended: x, Transport: c}
	}
	e, err := mpe.New(cfg)
	return c, e, err
}

// lie sends rank 0 a message whose memory never becomes resident.
func lie(addrs string, n int) error {
	_, e, err := engineOf(parseMap(addrs), 1)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := e.Send(ctx, 0, []byte("here"), mpe.Options{}); err != nil {
		return err
	}
	memory, err := neverThere(n)
	if err != nil {
		text := noFaults + err.Error()
		_, err = e.Send(ctx, 0, []byte(text), mpe.Options{Tag: 1})
		return err
	}
	if _, err := e.Send(ctx, 0, nil, mpe.Options{Tag: 1}); err != nil {
		return err
	}
	_, err = e.Send(ctx, 0, memory, mpe.Options{Tag: 2})
	return err
}

// neverThere returns n bytes whose page faults are never resolved.
func neverThere(n int) ([]byte, error) {
	const (
		api, register        = 0xc018aa3f, 0xc020aa00
		version              = 0xaa
		missing       uint64 = 1
	)
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	hello := &[3]uint64{version}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, api, uintptr(unsafe.Pointer(hello))); errno != 0 {
		return nil, errno
	}
	memory, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	rng := &[4]uint64{uint64(uintptr(unsafe.Pointer(&memory[0]))), uint64(n), missing}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, register, uintptr(unsafe.Pointer(rng))); errno != 0 {
		return nil, errno
	}
	return memory, nil
}

// beLiedTo receives from a lying peer, and checks that everything else still works.
func beLiedTo(addrs string) error {
	m := parseMap(addrs)
	c, e, err := engineOf(m, 0)
	if err != nil {
		return err
	}
	_, other, err := engineOf(m, 2)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	ctx, cancel := context.WithTimeout(context.Background(), transporttest.Timeout+2*copyTimeout)
	defer cancel()
	word, text := make([]byte, 4), make([]byte, 100)
	if _, err := e.Recv(ctx, 1, word, mpe.Options{}); err != nil {
		return err
	}
	if st, err := e.Recv(ctx, 1, text, mpe.Options{Tag: 1}); err != nil || st.Bytes > 0 {
		return errors.Join(errors.New(string(text[:st.Bytes])), err)
	}
	// The message is received into the first buffer and, after that receive is canceled, into the second.
	given, cut := context.WithCancel(ctx)
	defer cut()
	first, second := make([]byte, 2*liarSize), make([]byte, 2*liarSize)
	r, err := e.Irecv(1, first, mpe.Options{Tag: 2})
	if err != nil {
		return err
	}
	l := c.linkTo(1)
	if !l.canFetch {
		return errors.New("the liar's memory is not read")
	}
	for c.peers[1].waits() == 0 {
		if err := exchange(ctx, e, other); err != nil {
			return err
		}
	}
	// By now the system call is waiting.
	runtime.GC()
	if err := e.Heartbeat(ctx); err != nil {
		return err
	}
	cut()
	if _, err := r.Wait(given); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("canceling the receive returned %w", err)
	}
	for i := range first {
		first[i] = 7 // the buffer is ours again
	}
	r, err = e.Irecv(1, second, mpe.Options{Tag: 2})
	if err != nil {
		return err
	}
	for c.linkTo(1) == l {
		if err := exchange(ctx, e, other); err != nil {
			return err
		}
	}
	runtime.GC()
	if _, last := c.Link(1); c.linkTo(1) == nil && !errors.Is(last, errCopyTimeout) {
		return fmt.Errorf("the link ended because of %w", last)
	}
	// The peer connects again, and this time the message is copied through the ring.
	for c.linkTo(1) == nil {
		if err := exchange(ctx, e, other); err != nil {
			return err
		}
	}
	if _, fetches := c.SingleCopy(1); fetches {
		return errors.New("the liar's memory is read again")
	}
	given, cut = context.WithCancel(ctx)
	cut()
	if _, err := r.Wait(given); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("canceling the second receive returned %w", err)
	}
	if bytes.Count(first, []byte{7}) != len(first) {
		return errors.New("a buffer was written to that had been given back")
	}
	// The stuck goroutine must not prevent anything from ending.
	for _, e := range []*mpe.Engine{e, other} {
		if err := e.Close(given); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.New("well")
}

// waits returns 1 if a job is waiting for the peer's memory, and 0 otherwise.
func (p *peer) waits() int {
	p.copier.mu.Lock()
	defer p.copier.mu.Unlock()
	if j := p.copier.lastJob; j != nil {
		select {
		case <-j.done:
		default:
			return 1
		}
	}
	return 0
}

// exchange sends long messages between two engines.
func exchange(ctx context.Context, a, b *mpe.Engine) error {
	const n = 100_000
	data, buf := bytes.Repeat([]byte{3}, n), make([]byte, n)
	r, err := b.Irecv(a.Rank(), buf, mpe.Options{})
	if err != nil {
		return err
	}
	if _, err := a.Send(ctx, b.Rank(), data, mpe.Options{}); err != nil {
		return err
	}
	if _, err := r.Wait(ctx); err != nil || !bytes.Equal(data, buf) {
		return errors.Join(errors.New("a message of others"), err)
	}
	return nil
}
