package xdp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// deviceFrames is the number of frames that the pools of a device share, and maxPoolFrames and minPoolFrames are the
	// limits of one pool. All of these numbers are powers of two. One rank may hold half of a pool, at most 8 MiB, unread:
	// an FPGA does not retransmit datagrams that are lost while the rank is busy. A quarter is for receiving by the others
	// meanwhile, and a quarter for sending.
	deviceFrames, maxPoolFrames, minPoolFrames = 32768, 8192, 1024
	// maxTransmitRing is the maximum length of a socket's transmit ring.
	maxTransmitRing = 1024
)

// poolFrames returns the number of frames per pool of a device, a power of two.
func poolFrames(queues int) int {
	n := maxPoolFrames
	for n > minPoolFrames && n*queues > deviceFrames {
		n /= 2
	}
	return n
}

// pool holds the frames of one receive queue of a device, and the rings by which they return to the kernel and come
// back. The sockets of all ranks on that queue use it.
type pool struct {
	// base is a socket that owns the rings and the memory. It carries no datagrams.
	base   int
	memory []byte
	// zero is set if the device reads and writes the memory itself.
	zero bool
	// receiveRing is the length of a socket's receive ring.
	receiveRing int

	mu          sync.Mutex
	fill        *ring[uint64]
	completions *ring[uint64]
	free        []uint64 // frames for sending
}

// newPool opens a pool of the given number of frames for a queue. It prefers zero copy unless the program runs in
// generic mode.
func newPool(device, queue, frames int, generic bool) (_ *pool, err error) {
	p := &pool{base: -1, receiveRing: frames / 2}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.base, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if p.memory, err = allocateMemory(frames * frameLen); err != nil {
		return nil, err
	}
	registration := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&p.memory[0]))), Len: uint64(len(p.memory)),
		Size: frameLen}
	err = socketOption(unix.SYS_SETSOCKOPT, p.base, unix.XDP_UMEM_REG, unsafe.Pointer(&registration),
		unsafe.Sizeof(registration))
	runtime.KeepAlive(p.memory)
	if err != nil {
		return nil, fmt.Errorf("registering %d bytes of memory: %w", len(p.memory), err)
	}
	err = errors.Join(setRing(p.base, unix.XDP_UMEM_FILL_RING, frames),
		setRing(p.base, unix.XDP_UMEM_COMPLETION_RING, frames), setRing(p.base, unix.XDP_RX_RING, 2))
	if err != nil {
		return nil, err
	}
	offsets, err := ringOffsets(p.base)
	if err != nil {
		return nil, err
	}
	if p.fill, err = newRing[uint64](p.base, frames, unix.XDP_UMEM_PGOFF_FILL_RING, offsets.Fr); err != nil {
		return nil, err
	}
	p.completions, err = newRing[uint64](p.base, frames, unix.XDP_UMEM_PGOFF_COMPLETION_RING, offsets.Cr)
	if err != nil {
		return nil, err
	}
	for i := range frames {
		if address := uint64(i) * frameLen; i < frames/4*3 {
			p.fill.put(address)
		} else {
			p.free = append(p.free, address)
		}
	}
	p.fill.publish()
	if p.zero, err = bindPool(p.base, device, queue, generic); err != nil {
		return nil, err
	}
	return p, nil
}

// bindPool binds the base socket of a pool to a queue, and reports whether the device uses the memory directly.
func bindPool(fd, device, queue int, generic bool) (zero bool, err error) {
	address := unix.SockaddrXDP{Ifindex: uint32(device), QueueID: uint32(queue)}
	if !generic {
		address.Flags = unix.XDP_ZEROCOPY | unix.XDP_USE_NEED_WAKEUP
		if unix.Bind(fd, &address) == nil {
			return true, nil
		}
	}
	address.Flags = unix.XDP_COPY | unix.XDP_USE_NEED_WAKEUP
	// For some time after a socket is closed, the kernel still considers the queue to be in use.
	err = unix.Bind(fd, &address)
	for start := time.Now(); err == unix.EBUSY && time.Since(start) < bindTimeout; err = unix.Bind(fd, &address) {
		time.Sleep(time.Millisecond)
	}
	return false, os.NewSyscallError("bind", err)
}

// bindTimeout limits the wait for a queue that is in use.
const bindTimeout = time.Second

// setRing sets the length of one of a socket's rings.
func setRing(fd, option, size int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_XDP, option, size))
}

// ringOffsets returns the layout of a socket's rings.
func ringOffsets(fd int) (offsets unix.XDPMmapOffsets, err error) {
	err = socketOption(unix.SYS_GETSOCKOPT, fd, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&offsets), unsafe.Sizeof(offsets))
	return offsets, os.NewSyscallError("getsockopt", err)
}

// frame returns the memory at a descriptor's address.
func (p *pool) frame(address uint64, length uint32) []byte {
	if address > uint64(len(p.memory)) || uint64(length) > uint64(len(p.memory))-address {
		return nil // the kernel never returns such a descriptor
	}
	return p.memory[address : address+uint64(length) : address+uint64(length)]
}

// refill returns received frames to the kernel.
func (p *pool) refill(addresses []uint64) {
	p.mu.Lock()
	for _, address := range addresses {
		p.fill.put(address &^ (frameLen - 1))
	}
	p.fill.publish()
	p.mu.Unlock()
	if p.fill.needsWakeup() { // only in zero copy: the device has stopped receiving because the ring was empty
		_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(p.base), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	}
}

// allocate appends up to n frames for sending to list.
func (p *pool) allocate(list []uint64, n int) []uint64 {
	p.mu.Lock()
	if len(p.free) < n {
		for p.completions.available() {
			p.free = append(p.free, p.completions.take()&^(frameLen-1))
		}
		p.completions.release()
	}
	n = min(n, len(p.free))
	list = append(list, p.free[len(p.free)-n:]...)
	p.free = p.free[:len(p.free)-n]
	p.mu.Unlock()
	return list
}

// release takes back frames that were allocated but not sent.
func (p *pool) release(list []uint64) {
	p.mu.Lock()
	p.free = append(p.free, list...)
	p.mu.Unlock()
}

func (p *pool) close() {
	p.fill.close()
	p.completions.close()
	if p.base >= 0 {
		unix.Close(p.base)
	}
	if p.memory != nil {
		releaseMemory(p.memory)
	}
}

// released holds the address ranges of the closed pools of this process, by length. The caller of udp.Conn may still
// read a datagram while another goroutine closes the pool; such a read must not fault.
var released = struct {
	sync.Mutex
	memory map[int][][]byte
}{memory: make(map[int][][]byte)}

// allocateMemory returns memory for a pool.
func allocateMemory(length int) ([]byte, error) {
	released.Lock()
	defer released.Unlock()
	if list := released.memory[length]; len(list) > 0 {
		released.memory[length] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	memory, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	return memory, os.NewSyscallError("mmap", err)
}

// releaseMemory frees the pages of a pool. Those that the device still writes to are not reused.
func releaseMemory(memory []byte) {
	if unix.Madvise(memory, unix.MADV_DONTNEED) != nil {
		return // leaked: the kernel may still write to its pages
	}
	released.Lock()
	defer released.Unlock()
	released.memory[len(memory)] = append(released.memory[len(memory)], memory)
}

// socket is an AF_XDP socket of one rank, on one queue of a device.
type socket struct {
	fd       int
	pool     *pool
	receive  *ring[unix.XDPDesc]
	transmit *ring[unix.XDPDesc]
}

// newSocket opens a socket on the queue of a pool.
func newSocket(p *pool, device, queue int) (_ *socket, err error) {
	s := &socket{fd: -1, pool: p}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	transmit := min(p.receiveRing, maxTransmitRing)
	err = errors.Join(setRing(s.fd, unix.XDP_RX_RING, p.receiveRing), setRing(s.fd, unix.XDP_TX_RING, transmit))
	if err != nil {
		return nil, err
	}
	offsets, err := ringOffsets(s.fd)
	if err != nil {
		return nil, err
	}
	if s.receive, err = newRing[unix.XDPDesc](s.fd, p.receiveRing, unix.XDP_PGOFF_RX_RING, offsets.Rx); err != nil {
		return nil, err
	}
	if s.transmit, err = newRing[unix.XDPDesc](s.fd, transmit, unix.XDP_PGOFF_TX_RING, offsets.Tx); err != nil {
		return nil, err
	}
	address := unix.SockaddrXDP{Flags: unix.XDP_SHARED_UMEM, Ifindex: uint32(device), QueueID: uint32(queue),
		SharedUmemFD: uint32(p.base)}
	if err := unix.Bind(s.fd, &address); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	return s, nil
}

// kick makes the kernel send the frames in the transmit ring. If the device is busy, the frames stay in the ring, and
// the error is EAGAIN, EBUSY or ENOBUFS.
func (s *socket) kick() error {
	for s.transmit.needsWakeup() {
		before := s.transmit.consumer.Load()
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		after := s.transmit.consumer.Load()
		switch {
		case errno == 0 || after == s.transmit.next:
			return nil
		case errno == unix.EINTR || after != before: // the kernel sends a limited number of frames per call
		default:
			return errno
		}
	}
	return nil
}

// full returns the number of datagrams that the kernel has dropped because a ring was full or empty.
func (s *socket) full() uint64 {
	var statistics unix.XDPStatistics
	err := socketOption(unix.SYS_GETSOCKOPT, s.fd, unix.XDP_STATISTICS, unsafe.Pointer(&statistics),
		unsafe.Sizeof(statistics))
	if err != nil {
		return 0 // every kernel with AF_XDP supports it
	}
	return statistics.Rx_dropped + statistics.Rx_ring_full + statistics.Rx_fill_ring_empty_descs
}

func (s *socket) close() {
	s.receive.close()
	s.transmit.close()
	if s.fd >= 0 {
		unix.Close(s.fd)
	}
}
