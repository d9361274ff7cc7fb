package wire

import (
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
)

// Offer is shared memory that the daemon is about to hand over to a program.
type Offer struct {
	mem []byte
	fd  int
}

// NewOffer allocates memory for two rings and an arena of the given length.
func NewOffer(arena int) (*Offer, error) {
	n := MemoryLen(RingLen) + arena
	fd, err := sharedmem.Create(n)
	if err != nil {
		return nil, err
	}
	mem, err := sharedmem.Map(fd, n)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Offer{mem, fd}, nil
}

// Stream sends b together with the descriptor of the shared memory, and returns a connection through the rings in it.
// If it succeeds, it closes conn; if it fails, it releases the memory.
func (o *Offer) Stream(conn *net.UnixConn, b []byte) (Rings, error) {
	n, _, err := conn.WriteMsgUnix(b, unix.UnixRights(o.fd), nil)
	unix.Close(o.fd)
	if err == nil && n < len(b) {
		_, err = conn.Write(b[n:])
	}
	var link *Link
	if err == nil {
		link, err = NewLink(conn)
	}
	if err != nil {
		sharedmem.Unmap(o.mem)
		return nil, err
	}
	return NewRingLink(link, o.mem, RingLen, false), nil
}

// Greeting is a connection to a daemon that has not yet sent WELCOME. It keeps the memory's descriptor if the daemon
// sends one.
type Greeting struct {
	*net.UnixConn
	FD int
}

// NewGreeting returns a Greeting for a connection.
func NewGreeting(conn *net.UnixConn) *Greeting { return &Greeting{conn, -1} }

// Read implements io.Reader.
func (g *Greeting) Read(b []byte) (int, error) {
	var oob [64]byte
	n, used, flags, _, err := g.ReadMsgUnix(b, oob[:])
	if err == nil && n == 0 && len(b) > 0 {
		err = io.EOF
	}
	messages, _ := unix.ParseSocketControlMessage(oob[:used]) // cannot fail: the kernel created the messages
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			g.setFD(fd)
		}
	}
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		return 0, rlimit.ReceiveError()
	}
	return max(n, 0), err // n is -1 after an error
}

// setFD closes the current descriptor and stores a new one. The value -1 stands for no descriptor.
func (g *Greeting) setFD(fd int) {
	if g.FD >= 0 {
		unix.Close(g.FD)
	}
	g.FD = fd
}

// Close implements io.Closer.
func (g *Greeting) Close() error {
	g.setFD(-1)
	return g.UnixConn.Close()
}

// Stream returns the connection to use after WELCOME, with rings and an arena of the given lengths. If it succeeds, it
// closes the socket on which WELCOME was received.
func (g *Greeting) Stream(length, arena uint64) (Polled, error) {
	var mem []byte
	if length > 0 {
		switch {
		case length > maxRing || !isRingSize(int(length)):
			return nil, Violationf("WELCOME with rings of %d bytes", length)
		case arena > maxArena:
			return nil, Violationf("WELCOME with an arena of %d bytes", arena)
		}
		var err error
		if mem, err = sharedmem.Map(g.FD, MemoryLen(int(length))+int(arena)); err != nil {
			return nil, fmt.Errorf("the memory for rings of %d bytes and an arena of %d: %w", length, arena, err)
		}
	}
	link, err := NewLink(g.UnixConn)
	if err != nil {
		sharedmem.Unmap(mem)
		return nil, err
	}
	if g.setFD(-1); mem == nil {
		return link, nil
	}
	return NewRingLink(link, mem, int(length), true), nil
}
