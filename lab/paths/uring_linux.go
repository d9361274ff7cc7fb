package main

import (
	"fmt"
	"log"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of linux/io_uring.h.
const (
	setupSQPoll       = 1 << 1
	setupSQAffinity   = 1 << 2
	setupTaskRunFlag  = 1 << 9
	setupSingleIssuer = 1 << 12
	setupDeferTaskRun = 1 << 13
	setupNoSQArray    = 1 << 16
	offSQEs           = 0x10000000
	enterGetEvents    = 1 << 0
	enterSQWakeup     = 1 << 1
	enterRegistered   = 1 << 4
	sqTaskRun         = 1 << 2
	cqeMore           = 1 << 1
	cqeBufferShift    = 16
	opReadFixed       = 4
	opWriteFixed      = 5
	opReceiveMessage  = 10
	opSend            = 26
	sqeFixedFile      = 1 << 0
	sqeBufferSelect   = 1 << 5
	sqeSkipSuccess    = 1 << 6
	receivePollFirst  = 1 << 0
	receiveMultishot  = 1 << 1
	registerBuffers   = 0
	registerFiles     = 2
	registerRingFDs   = 20
	registerPBufRing  = 22
	registerNAPI      = 27
)

const (
	sqEntries = 16
	cqEntries = 2 * sqEntries
	// bufferLen is the length of a buffer. There is one for each submission entry, and inBuffers to receive.
	bufferLen = 128
	inBuffers = 16
	// receiveTag is the user data of a request to receive.
	receiveTag = 1
)

// uringParams is struct io_uring_params. sq has the offsets of the head, tail, mask, length and flags of the submission
// ring. cq has the offsets of the head, tail, mask, length, number of lost entries, and entries of the completion ring.
type uringParams struct {
	_, _, flags, sqThreadCPU, sqThreadIdle, _, _ uint32
	_                                            [3]uint32
	sq, cq                                       [10]uint32
}

// sqe is struct io_uring_sqe. The file and the buffers that it uses have number 0.
type sqe struct {
	opcode, flags        uint8
	ioprio               uint16
	_                    int32
	addr2, addr          uint64
	length, messageFlags uint32
	userData             uint64
	_, _                 uint16
	addrLen, _           uint16
	_, _                 uint64
}

// cqe is struct io_uring_cqe.
type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

// receivedMessage is struct io_uring_recvmsg_out and the sender's address. They precede the payload in a provided
// buffer.
type receivedMessage struct {
	_, _, payloadLen, _ uint32
	from                unix.RawSockaddrInet4
}

// uringOptions selects how a uring submits and receives.
type uringOptions struct {
	fixed     bool // read and write with registered buffers, on a connected socket
	try       bool // poll by submitting requests that do not wait for a datagram
	multishot bool // one request receives all datagrams into provided buffers
	sqPoll    bool // a kernel thread on the processor of the side submits, and the side sleeps
	busyPoll  bool // wait for a datagram in the kernel, which polls the device
}

// uring exchanges datagrams with io_uring. It submits a datagram together with the next request to receive.
type uring struct {
	uringOptions
	fd                               int
	ringFD                           [2]uint64 // descriptor in the thread's table of rings, and fd
	sqHead, sqTail, sqFlags          *uint32
	cqHead, cqTail, cqLost           *uint32
	sqes                             *[sqEntries]sqe
	cqes                             *[cqEntries]cqe
	submitted                        uint32
	armed                            bool
	sent, received, requests, failed int
	peer, from                       unix.RawSockaddrInet4
	iov                              unix.Iovec
	header                           unix.Msghdr
	buffers                          *[sqEntries + inBuffers][bufferLen]byte
	provided                         *[inBuffers][2]uint64 // address; length, buffer ID, and in the first one the tail
	held                             int                   // the buffer that the caller reads, or -1
}

// openURing registers the socket and the buffers with the ring, so that no request pays for looking them up. fixed
// connects the socket, because requests on fixed buffers carry no address.
func openURing(o uringOptions, own, peer *endpoint) transport {
	socket := int32(openSocket(own))
	if o.fixed {
		must("connect", unix.Connect(int(socket), &unix.SockaddrInet4{Port: port, Addr: peer.Addr.As4()}))
	}
	u := &uring{uringOptions: o, peer: rawAddr(peer), held: -1}
	u.setup()
	u.buffers = (*[sqEntries + inBuffers][bufferLen]byte)(unsafe.Pointer(&mapMemory(-1, 0, unsafe.Sizeof(*u.buffers))[0]))
	all := unix.Iovec{Base: &u.buffers[0][0], Len: uint64(unsafe.Sizeof(*u.buffers))}
	u.register(registerFiles, unsafe.Pointer(&socket))
	u.register(registerBuffers, unsafe.Pointer(&all))
	u.header = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&u.from)), Namelen: unix.SizeofSockaddrInet4}
	if o.multishot {
		u.provided = (*[inBuffers][2]uint64)(unsafe.Pointer(&mapMemory(-1, 0, unsafe.Sizeof(*u.provided))[0]))
		ring := [5]uint64{addressOf(unsafe.Pointer(u.provided)), inBuffers} // of buffer group 0
		u.register(registerPBufRing, unsafe.Pointer(&ring))
		for i := range inBuffers {
			u.provide(i)
		}
	} else {
		u.iov = unix.Iovec{Base: &u.buffers[sqEntries][0], Len: bufferLen}
		u.header.Iov, u.header.Iovlen = &u.iov, 1
	}
	if o.busyPoll {
		napi := [2]uint64{busyPollTime | 1<<32} // prefer busy polling
		u.register(registerNAPI, unsafe.Pointer(&napi))
	}
	return u
}

// setup creates and maps the rings.
func (u *uring) setup() {
	p := uringParams{flags: setupSingleIssuer | setupNoSQArray | setupDeferTaskRun | setupTaskRunFlag}
	if u.sqPoll {
		_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&p.sqThreadCPU)), 0, 0) // valid arguments
		p.flags = setupSingleIssuer | setupNoSQArray | setupSQPoll | setupSQAffinity
		p.sqThreadIdle = 1000 // ms until it sleeps
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, sqEntries, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		must("io_uring_setup", errno)
	}
	u.fd = int(fd)
	u.ringFD = [2]uint64{1<<32 - 1, uint64(fd)}
	u.register(registerRingFDs, unsafe.Pointer(&u.ringFD))
	rings := mapMemory(u.fd, 0, uintptr(p.cq[5])+unsafe.Sizeof(*u.cqes))
	word := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&rings[offset])) }
	u.sqHead, u.sqTail, u.sqFlags = word(p.sq[0]), word(p.sq[1]), word(p.sq[4])
	u.cqHead, u.cqTail, u.cqLost = word(p.cq[0]), word(p.cq[1]), word(p.cq[4])
	u.cqes = (*[cqEntries]cqe)(unsafe.Pointer(&rings[p.cq[5]]))
	u.sqes = (*[sqEntries]sqe)(unsafe.Pointer(&mapMemory(u.fd, offSQEs, unsafe.Sizeof(*u.sqes))[0]))
}

// register registers one object.
func (u *uring) register(opcode uintptr, object unsafe.Pointer) {
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_REGISTER, uintptr(u.fd), opcode, uintptr(object), 1, 0, 0)
	if errno != 0 {
		must(fmt.Sprint("io_uring_register ", opcode), errno)
	}
}

// provide returns a buffer to the kernel.
func (u *uring) provide(number int) {
	const tailShift = 48
	tail := u.provided[0][1] >> tailShift
	entry := &u.provided[tail%inBuffers]
	entry[0] = addressOf(unsafe.Pointer(&u.buffers[sqEntries+number]))
	entry[1] = entry[1]>>tailShift<<tailShift | uint64(number)<<32 | bufferLen
	first := u.provided[0][1] & (1<<tailShift - 1)
	atomic.StoreUint64(&u.provided[0][1], first|(tail+1)<<tailShift)
}

// push appends a request to the submission ring.
func (u *uring) push(e sqe) {
	e.flags |= sqeFixedFile // the only one
	tail := *u.sqTail
	u.sqes[tail%sqEntries] = e
	atomic.StoreUint32(u.sqTail, tail+1)
}

// send queues a datagram. The completion ring gets an entry only if the request fails.
func (u *uring) send(payload []byte) {
	buffer := &u.buffers[*u.sqTail%sqEntries]
	e := sqe{opcode: opSend, flags: sqeSkipSuccess, addr: addressOf(unsafe.Pointer(buffer)),
		length: uint32(copy(buffer[:], payload))}
	if u.fixed {
		e.opcode = opWriteFixed
	} else {
		e.addr2, e.addrLen = addressOf(unsafe.Pointer(&u.peer)), unix.SizeofSockaddrInet4
	}
	u.push(e)
	u.sent++
}

// arm queues a request to receive.
func (u *uring) arm() {
	e := sqe{opcode: opReceiveMessage, addr: addressOf(unsafe.Pointer(&u.header)), length: 1, userData: receiveTag}
	switch {
	case u.multishot:
		e.flags, e.ioprio = sqeBufferSelect, receiveMultishot
	case u.fixed:
		e.opcode, e.addr, e.length = opReadFixed, addressOf(unsafe.Pointer(&u.buffers[sqEntries])), bufferLen
	case u.try:
		e.messageFlags = unix.MSG_DONTWAIT
	default:
		e.ioprio = receivePollFirst
	}
	u.push(e)
	u.armed = true
	u.requests++
}

// receive returns the next datagram, in a buffer that the caller may read until the next call. It submits a new request
// to receive after the kernel has reported the end of the previous one.
func (u *uring) receive() []byte {
	if u.held >= 0 {
		u.provide(u.held)
		u.held = -1
	}
	for {
		if !u.armed {
			u.arm()
		}
		u.wait()
		head := *u.cqHead
		c := u.cqes[head%cqEntries]
		atomic.StoreUint32(u.cqHead, head+1)
		u.armed = c.flags&cqeMore != 0
		if c.res >= 0 {
			u.received++
			return u.payload(c)
		}
		if errno := unix.Errno(-c.res); errno != unix.EAGAIN || !u.try {
			must(fmt.Sprint("io_uring request ", c.userData), errno)
		}
		u.failed++
	}
}

// wait polls until there is a completion.
func (u *uring) wait() {
	sleeps := u.sqPoll || u.busyPoll
	for atomic.LoadUint32(u.cqTail) == *u.cqHead {
		if sleeps || *u.sqTail != u.submitted || atomic.LoadUint32(u.sqFlags)&sqTaskRun != 0 {
			u.enter(sleeps)
		}
	}
}

// enter submits requests, or wakes the thread that submits them. It runs deferred work, and may wait for a completion.
func (u *uring) enter(wait bool) {
	var completions uintptr
	if wait {
		completions = 1
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(uint32(u.ringFD[0])),
		uintptr(*u.sqTail-u.submitted), completions, enterGetEvents|enterSQWakeup|enterRegistered, 0, 0)
	if errno != 0 && errno != unix.EINTR {
		must("io_uring_enter", errno)
	}
	u.submitted = atomic.LoadUint32(u.sqHead)
}

// payload returns the payload of a received datagram after checking its sender.
func (u *uring) payload(c cqe) []byte {
	buffer, from := u.buffers[sqEntries][:c.res], u.from
	if u.multishot {
		u.held = int(c.flags >> cqeBufferShift)
		buffer = u.buffers[sqEntries+u.held][:]
		message := (*receivedMessage)(unsafe.Pointer(&buffer[0]))
		buffer, from = buffer[unsafe.Sizeof(*message):][:message.payloadLen], message.from
	}
	if from != u.peer && !u.fixed {
		must("io_uring", errForeign)
	}
	return buffer
}

func (u *uring) flush() { u.enter(false) }

// check confirms with the counters of the rings that io_uring carried all datagrams.
func (u *uring) check(total int, c counts) {
	submitted, completed := int(*u.sqHead), int(*u.cqTail)
	if u.sent != total || u.received != total || submitted != u.sent+u.requests || completed != u.received+u.failed ||
		*u.cqLost != 0 || u.multishot && u.requests != 1 {
		log.Fatalf("io_uring: %d submitted, %d completed, %d lost: %d sends, %d receives by %d requests, %d failed",
			submitted, completed, *u.cqLost, u.sent, u.received, u.requests, u.failed)
	}
	c.checkSockets(total)
}
