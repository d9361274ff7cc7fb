package progress

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yield lets other processes run on the same core.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) } // cannot fail

// Processor returns the number of the processor on which the caller is running, or -1 if it is unknown.
func Processor() int {
	var n uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&n)), 0, 0); err != 0 {
		return -1
	}
	return int(n)
}

// leaveProcessor moves the calling thread to another processor by briefly excluding it from processor n. It
// does nothing if there is no other processor or the system does not permit it.
func leaveProcessor(n int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil {
		return
	}
	others := all
	others.Clear(n)
	if others.Count() > 0 && unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &all) // restore
	}
}

// TakeDescriptor duplicates the descriptor of a connection and closes conn. Go's poller does not know the duplicate.
// For a descriptor that it knows, it wakes up a thread for every event, even while a goroutine polls; with few cores,
// that thread preempts the polling goroutine.
func TakeDescriptor(conn interface {
	syscall.Conn
	io.Closer
}) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err = cmp.Or(err, os.NewSyscallError("fcntl", failed)); err != nil {
		return -1, err
	}
	if err := conn.Close(); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
