package shm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nonce is a random number in a process's memory. A reader that finds it there knows that it reads the right process;
// the PID does not prove this, because a PID may be reused after its process exits.
type nonce [nonceLen]byte

func newNonce() *nonce {
	n := new(nonce)
	rand.Read(n[:]) // never fails
	return n
}

// memoryID is the address and the value of a process's nonce. An address of 0 forbids reading the process's memory.
type memoryID struct {
	addr  uint64
	nonce nonce
}

// id returns the address and the value by which a peer recognizes this process.
func (n *nonce) id() memoryID {
	return memoryID{addr: uint64(uintptr(unsafe.Pointer(n))), nonce: *n}
}

// remote is another process whose memory this one reads.
type remote struct {
	pid int
	memoryID
}

// remoteReader reads the memory of other processes. It holds the arguments of the system call, so that a read
// does not allocate.
type remoteReader struct {
	foundNonce nonce
	to         [2]unix.Iovec
	from       [2]unix.RemoteIovec
	// entries holds the pagemap entries of the pages to read. It is large enough even for the smallest page size.
	entries [(maxSingleCopy/minPageLen + 2) * pagemapEntry]byte
}

var errOtherMemory = errors.New("it is another process's memory")

// read copies len(dst) bytes from addr in the process r. It blocks until the pages are resident. If it fails, the
// contents of dst are undefined.
func (rr *remoteReader) read(r *remote, dst []byte, addr uint64) error {
	rr.foundNonce = nonce{}
	rr.to[0].Base = &rr.foundNonce[0]
	rr.to[0].SetLen(nonceLen)
	rr.from[0] = unix.RemoteIovec{Base: uintptr(r.addr), Len: nonceLen}
	return rr.readv(r, 0, dst, addr)
}

// readResident is like read, but for memory known to be resident. It does not check the nonce, because the pagemap
// refers to the right process already.
func (rr *remoteReader) readResident(r *remote, dst []byte, addr uint64) error {
	return rr.readv(r, 1, dst, addr)
}

// readv copies len(dst) bytes from addr. If first is 0, it copies the nonce as well.
func (rr *remoteReader) readv(r *remote, first int, dst []byte, addr uint64) error {
	n, end := len(dst), 1
	if n > 0 {
		rr.to[1].Base = &dst[0]
		rr.to[1].SetLen(n)
		rr.from[1] = unix.RemoteIovec{Base: uintptr(addr), Len: n}
		end = 2
	}
	got, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(r.pid), uintptr(unsafe.Pointer(&rr.to[first])),
		uintptr(end-first),
		uintptr(unsafe.Pointer(&rr.from[first])), uintptr(end-first), 0)
	rr.to[1].Base = nil // the caller owns the memory: drop the reference
	head := 0
	if first == 0 {
		head = nonceLen
	}
	switch {
	case errno != 0:
		return fmt.Errorf("reading the memory of process %d: %w", r.pid, errno)
	case first == 0 && rr.foundNonce != r.nonce:
		return fmt.Errorf("reading the memory of process %d: %w", r.pid, errOtherMemory)
	case int(got) != head+n:
		return fmt.Errorf("reading the memory of process %d at %#x: %d of %d bytes were there", r.pid, addr,
			int(got)-head, n)
	}
	return nil
}
