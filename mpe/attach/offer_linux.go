package attach

import (
	"net"

	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"golang.org/x/sys/unix"
)

// offer is memory that goes to a program.
type offer struct {
	mem []byte
	fd  int
}

// newOffer makes the memory of two rings, and of an arena of so many bytes.
func newOffer(arena int) (*offer, error) {
	n := memoryLen(ringLen) + arena
	fd, err := sharedmem.Create(n)
	if err != nil {
		return nil, err
	}
	mem, err := sharedmem.Map(fd, n)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &offer{mem, fd}, nil
}

// write writes b with the descriptor, which it closes.
func (o *offer) write(conn *net.UnixConn, b []byte) error {
	defer o.close()
	n, _, err := conn.WriteMsgUnix(b, unix.UnixRights(o.fd), nil)
	if err == nil && n < len(b) {
		_, err = conn.Write(b[n:])
	}
	return err
}

// stream returns what the connection is from WELCOME on. It closes conn unless it fails.
func (o *offer) stream(conn *net.UnixConn) (rings, error) {
	l, err := newLink(conn)
	if err != nil {
		return nil, err
	}
	return newRingLink(l, o.mem, ringLen, false), nil
}

// release gives the memory back.
func (o *offer) release() {
	o.close()
	sharedmem.Unmap(o.mem)
}

// close closes the descriptor.
func (o *offer) close() {
	if o.fd >= 0 {
		unix.Close(o.fd)
		o.fd = -1
	}
}
