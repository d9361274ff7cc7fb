package path

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// firstTUN is the file descriptor of the TUN device of end 0 in the emulator's process. The device of end 1 is the next
// one.
const firstTUN = 3

// readBatch limits how many packets are read from a device before packets that are due are delivered.
const readBatch = 64

// readyLine is the line that the emulator prints when it begins to forward packets. When it stops, it prints its Use as
// JSON.
const readyLine = "ready\n"

// emulator forwards packets between two devices.
type emulator struct {
	tuns       [2]int
	directions [2]*Direction
	buffer     []byte
	// stopFD is a file descriptor that becomes readable when the emulator must stop.
	stopFD int
	// refused is the number of packets that a device rejected.
	refused uint64
}

// RunEmulator runs the emulator of a path in a separate process. args are the arguments after EmulatorCommand. It stops
// when ctx is done or stdin is closed. All threads of the Go scheduler must have a real-time priority, because every 10
// ms another thread must run before the emulator can continue.
func RunEmulator(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: %d arguments instead of one", EmulatorCommand, len(args))
	}
	var config Config
	if err := json.Unmarshal([]byte(args[0]), &config); err != nil {
		return err
	}
	config, err := config.withDefaults()
	if err != nil {
		return err
	}
	var wake [2]int
	if err := unix.Pipe2(wake[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { unix.Close(wake[1]) })
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // any error stops the emulator, too
		cancel()
	}()
	e := emulator{tuns: [2]int{firstTUN, firstTUN + 1}, buffer: make([]byte, config.MTU), stopFD: wake[0]}
	begin := time.Now()
	for i, tun := range e.tuns {
		if err := unix.SetNonblock(tun, true); err != nil {
			return err
		}
		if e.directions[i], err = newDirection(config, i, begin); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(stdout, readyLine); err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := e.run(); err != nil {
		return err
	}
	use := Use{CPU: 100 * processTime().Seconds() / time.Since(begin).Seconds(), Refused: e.refused}
	for i, d := range e.directions {
		use.Directions[i] = d.traffic()
	}
	return json.NewEncoder(stdout).Encode(use)
}

// run forwards packets until the emulator is stopped.
func (e *emulator) run() error {
	for {
		for i, d := range e.directions {
			if err := e.read(e.tuns[i], d); err != nil {
				return err
			}
		}
		for i, d := range e.directions {
			e.deliver(d, e.tuns[1-i])
		}
		if stopped, err := e.wait(); stopped || err != nil {
			return err
		}
	}
}

// read reads packets from a device and passes them to a direction.
func (e *emulator) read(tun int, d *Direction) error {
	for range readBatch {
		n, errno := rawSyscall(unix.SYS_READ, tun, e.buffer)
		switch errno {
		case 0:
			d.Send(time.Now(), e.buffer[:n])
		case unix.EAGAIN:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("cannot read from a TUN device: %w", errno)
		}
	}
	return nil
}

// deliver writes the due packets of a direction to a device.
func (e *emulator) deliver(d *Direction, tun int) {
	for p, ok := d.Deliver(time.Now()); ok; p, ok = d.Deliver(time.Now()) {
		if _, errno := rawSyscall(unix.SYS_WRITE, tun, p); errno != 0 {
			e.refused++
		}
	}
}

// longestWait is the maximum duration of a call to wait, during which no garbage collection can start.
const longestWait = 10 * time.Millisecond

// wait waits until a device has a packet to read or until a packet is due, but at most for longestWait. It reports
// whether the emulator must stop.
func (e *emulator) wait() (stopped bool, err error) {
	left := longestWait
	for _, d := range e.directions {
		if due, ok := d.Due(); ok {
			left = min(left, max(time.Until(due), 0))
		}
	}
	fds := [...]unix.PollFd{
		{Fd: int32(e.tuns[0]), Events: unix.POLLIN}, {Fd: int32(e.tuns[1]), Events: unix.POLLIN},
		{Fd: int32(e.stopFD), Events: unix.POLLIN},
	}
	limit := unix.NsecToTimespec(int64(left))
	_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), uintptr(len(fds)),
		uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		return false, fmt.Errorf("cannot wait for a TUN device: %w", errno)
	}
	return errno == 0 && fds[2].Revents != 0, nil
}

// rawSyscall makes a system call with a packet, without notifying the Go scheduler. The thread keeps its P (the
// scheduler's processor) and need not reacquire it afterwards; the same holds for the call in wait.
func rawSyscall(call uintptr, fd int, packet []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(packet))),
		uintptr(len(packet)))
	return int(n), errno
}

// processTime returns the processor time used by this process.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
