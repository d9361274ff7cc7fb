package shm

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// Two ranks exchange hellos over a Unix socket before they share memory. Numbers are little-endian. Addresses have 64
// bits, and all other numbers have 32.
const (
	// helloMagic includes the version, so that ranks with different memory layouts do not connect.
	helloMagic = "zrlshm06"
	helloName  = len("zrlshm") // the prefix shared by all versions
	helloLen   = len(helloMagic) + 5*4 + 8 + nonceLen
	// helloTimeout limits the wait for a hello.
	helloTimeout = 5 * time.Second
	// maxHandles is greater than the number of file descriptors in any message.
	maxHandles = 5
)

// purpose is the purpose of a hello.
type purpose uint32

const (
	// requestLink is sent by the lower rank. It carries the rank's bell, doorbell page and shared buffer, and the
	// memory of the link.
	requestLink purpose = iota + 1
	// grantLink is the higher rank's answer. It carries that rank's bell, doorbell page and shared buffer.
	grantLink
	// requestCall asks the lower rank to call. The higher rank sends it when it starts.
	requestCall
	// linkReady is the lower rank's last message. It reports that its link is ready.
	linkReady
	// refuseLink reports a limit of the sender's process that prevents the link. Either rank may send it at any time.
	// The ring field contains the rlimit.Resource, and the address field contains the limit.
	refuseLink
)

// handles returns the number of descriptors in a hello.
func (p purpose) handles() int {
	return [...]int{requestLink: 4, grantLink: 3, requestCall: 0, linkReady: 0, refuseLink: 0}[p]
}

// hello is one message of the exchange.
type hello struct {
	purpose  purpose
	src, dst int
	// ring is the size in bytes of each ring, or 0 if the hello carries no memory. In refuseLink, it is the resource.
	ring int
	// memory identifies memory of the sender for a test read; it is set in requestLink and grantLink. canFetch reports
	// whether the sender can read the receiver's memory; it is set in grantLink and linkReady.
	memory   memoryID
	canFetch bool
	// handles are the descriptors of the bell, the doorbell page, the shared buffer and the memory.
	handles []int
}

var (
	errNoHello   = errors.New("invalid hello (version mismatch?): all ranks must run the same version of zrlmpid")
	errVersion   = errors.New("all ranks of a host must run the same version of zrlmpid")
	errOtherUser = errors.New("it is another user's process")
	errHungUp    = errors.New("it closed the connection: it may be another version of zrlmpid, have another rank " +
		"map, or run as another user")
)

// sendHello sends h. The caller keeps ownership of its descriptors.
func sendHello(conn *net.UnixConn, h hello) error {
	b := []byte(helloMagic)
	fetches := 0
	if h.canFetch {
		fetches = 1
	}
	for _, n := range []int{int(h.purpose), h.src, h.dst, h.ring, fetches} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = binary.LittleEndian.AppendUint64(b, h.memory.addr)
	b = append(b, h.memory.nonce[:]...)
	var rights []byte
	if len(h.handles) > 0 {
		rights = unix.UnixRights(h.handles...)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	return sendMessage(conn, b, rights)
}

// sendMessage sends a message without raising SIGPIPE. The program of a rank may handle that signal, and
// sendMessage may run on the program's thread.
func sendMessage(conn *net.UnixConn, b, rights []byte) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), b, rights, nil, unix.MSG_NOSIGNAL)
		return sent != unix.EAGAIN && sent != unix.EINTR
	})
	return cmp.Or(err, os.NewSyscallError("sendmsg", sent))
}

// receiveHello waits for a hello from a process of our user. The caller must close the descriptors in h, even
// if there is an error. With errVersion and errors of rlimit, src and dst are valid.
func receiveHello(conn *net.UnixConn) (h hello, err error) {
	if err := sameUser(conn); err != nil {
		return h, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return h, err
	}
	b, rights := make([]byte, helloLen+1), make([]byte, unix.CmsgSpace(4*maxHandles))
	n, oobn, flags, err := receive(conn, b, rights)
	h.handles = parseHandles(rights[:oobn])
	switch {
	case errors.Is(err, io.EOF):
		err = errHungUp
	case err == nil:
		err = h.parse(b[:n], flags&unix.MSG_CTRUNC != 0 && len(h.handles) < maxHandles)
	}
	if err != nil {
		closeHandles(h.handles)
		return hello{src: h.src, dst: h.dst}, err
	}
	return h, conn.SetReadDeadline(time.Time{})
}

// receive reads the next message. If the peer closed the connection before it read all our messages, the first
// read fails with ECONNRESET; later reads return the messages that the peer had sent before.
func receive(conn *net.UnixConn, b, rights []byte) (n, oobn, flags int, err error) {
	n, oobn, flags, _, err = conn.ReadMsgUnix(b, rights)
	if errors.Is(err, unix.ECONNRESET) {
		n, oobn, flags, _, err = conn.ReadMsgUnix(b, rights)
	}
	return n, oobn, flags, err
}

// parse decodes a hello, except for its descriptors. lost is set if some of its descriptors did not arrive.
func (h *hello) parse(b []byte, lost bool) error {
	if len(b) != helloLen || string(b[:helloName]) != helloMagic[:helloName] {
		return errNoHello
	}
	magic := string(b[:len(helloMagic)])
	b = b[len(helloMagic):]
	number := func(i int) int { return int(binary.LittleEndian.Uint32(b[4*i:])) }
	if magic != helloMagic {
		h.src, h.dst = number(1), number(2)
		return fmt.Errorf("it says %q, and this rank %q: %w", magic, helloMagic, errVersion)
	}
	h.purpose, h.src, h.dst, h.ring = purpose(number(0)), number(1), number(2), number(3)
	if h.purpose < requestLink || h.purpose > refuseLink {
		return errNoHello
	}
	if lost {
		return rlimit.ReceiveError()
	}
	if len(h.handles) != h.purpose.handles() {
		return errNoHello
	}
	h.canFetch = number(4) == 1
	h.memory.addr = binary.LittleEndian.Uint64(b[20:])
	copy(h.memory.nonce[:], b[28:])
	if h.purpose == requestLink && !isRingSize(h.ring) {
		return fmt.Errorf("its rings have %d bytes, which is not a valid ring size", h.ring)
	}
	return nil
}

// parseHandles returns the descriptors that came with a message.
func parseHandles(b []byte) (handles []int) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return nil
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			handles = append(handles, fds...)
		}
	}
	return handles
}

func closeHandles(handles []int) {
	for _, fd := range handles {
		unix.Close(fd)
	}
}

// credentials returns the credentials of the process at the other end.
func credentials(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(controlErr, err)
}

// sameUser returns an error unless the process at the other end belongs to our user.
func sameUser(conn *net.UnixConn) error {
	cred, err := credentials(conn)
	if err == nil && cred.Uid != uint32(os.Geteuid()) {
		err = errOtherUser
	}
	return err
}
