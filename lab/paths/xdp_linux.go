package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os/exec"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

const (
	xdpRingLen  = 64
	xdpFrameLen = 2048
)

// xdpRing is one of the four rings that an AF_XDP socket shares with the kernel.
type xdpRing[T any] struct {
	producer, consumer *uint32
	entries            *[xdpRingLen]T
}

func mapRing[T any](fd int, offset unix.XDPRingOffset, page int64) (r xdpRing[T]) {
	memory := mapMemory(fd, page, uintptr(offset.Desc)+unsafe.Sizeof(*r.entries))
	return xdpRing[T]{(*uint32)(unsafe.Pointer(&memory[offset.Producer])),
		(*uint32)(unsafe.Pointer(&memory[offset.Consumer])), (*[xdpRingLen]T)(unsafe.Pointer(&memory[offset.Desc]))}
}

// push appends an entry to a ring that is not full.
func (r *xdpRing[T]) push(entry T) {
	n := *r.producer
	r.entries[n%xdpRingLen] = entry
	atomic.StoreUint32(r.producer, n+1)
}

// xdpOptions selects the mode of an AF_XDP socket.
type xdpOptions struct {
	generic  bool // the XDP program runs on packets that the kernel has already put into its own buffers
	busyPoll bool // system calls on the socket poll the device
}

// xdpSocket exchanges Ethernet frames with an AF_XDP socket in copy mode.
type xdpSocket struct {
	xdpOptions
	fd               int
	own, peer        *endpoint
	link             link.Link
	memory           []byte // xdpRingLen frames to receive, and as many to send
	fill, completion xdpRing[uint64]
	in, out          xdpRing[unix.XDPDesc]
	held             uint64 // address of the frame that the caller reads, if holds
	holds            bool
}

// openXDP opens an AF_XDP socket. The first half of its memory is for received frames, the second for sent ones.
func openXDP(o xdpOptions, own, peer *endpoint) transport {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must("AF_XDP", err)
	x := &xdpSocket{xdpOptions: o, fd: fd, own: own, peer: peer}
	x.memory = mapMemory(-1, 0, 2*xdpRingLen*xdpFrameLen)
	umem := unix.XDPUmemReg{Addr: addressOf(unsafe.Pointer(&x.memory[0])), Len: uint64(len(x.memory)), Size: xdpFrameLen}
	x.option(unix.SYS_SETSOCKOPT, unix.XDP_UMEM_REG, unsafe.Pointer(&umem), unsafe.Sizeof(umem))
	rings := []int{unix.XDP_RX_RING, unix.XDP_TX_RING, unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING}
	for _, ring := range rings {
		must("AF_XDP ring", unix.SetsockoptInt(x.fd, unix.SOL_XDP, ring, xdpRingLen))
	}
	var offsets unix.XDPMmapOffsets
	length := unsafe.Sizeof(offsets)
	x.option(unix.SYS_GETSOCKOPT, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&offsets), uintptr(unsafe.Pointer(&length)))
	x.fill = mapRing[uint64](x.fd, offsets.Fr, unix.XDP_UMEM_PGOFF_FILL_RING)
	x.completion = mapRing[uint64](x.fd, offsets.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING)
	x.in = mapRing[unix.XDPDesc](x.fd, offsets.Rx, unix.XDP_PGOFF_RX_RING)
	x.out = mapRing[unix.XDPDesc](x.fd, offsets.Tx, unix.XDP_PGOFF_TX_RING)
	for i := range uint64(xdpRingLen) {
		x.fill.push(i * xdpFrameLen)
	}
	if o.busyPoll {
		setBusyPoll(fd)
	}
	device, err := net.InterfaceByName(deviceName)
	must("device", err)
	x.attach(device.Index)
	must("bind AF_XDP", unix.Bind(fd, &unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(device.Index)}))
	// In Linux 6.18, bind sets the NAPI ID if the driver assigns its NAPI instances to queues. That of veth does not.
	if id, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID); o.busyPoll && id == 0 {
		log.Fatal("the kernel does not busy poll this device for an AF_XDP socket, which has no NAPI ID")
	}
	return x
}

// option sets or gets an option of the socket. For the latter, length is a pointer.
func (x *xdpSocket) option(call, option uintptr, value unsafe.Pointer, length uintptr) {
	_, _, errno := unix.Syscall6(call, uintptr(x.fd), unix.SOL_XDP, option, uintptr(value), length, 0)
	if errno != 0 {
		must(fmt.Sprint("AF_XDP option ", option), errno)
	}
}

// attach attaches a program to the device. It redirects datagrams for the engine's port to the socket, and passes all
// other packets to the kernel.
func (x *xdpSocket) attach(device int) {
	sockets, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	must("create a map of AF_XDP sockets", err)
	must("put a socket into a map", sockets.Put(uint32(0), uint32(x.fd)))
	const pass = 2 // XDP_PASS
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // begin of the frame
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, headersLen),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
		asm.JNE.Imm(asm.R5, 0x0008, "pass"), // not IPv4, in network byte order
		asm.LoadMem(asm.R5, asm.R2, ethernetLen+9, asm.Byte),
		asm.JNE.Imm(asm.R5, unix.IPPROTO_UDP, "pass"),
		asm.LoadMem(asm.R5, asm.R2, ethernetLen+ipv4Len+2, asm.Half),
		asm.JNE.Imm(asm.R5, port>>8|port&0xff<<8, "pass"),
		asm.LoadMapPtr(asm.R1, sockets.FD()),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Imm(asm.R3, pass), // if the map has no socket
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, pass).WithSymbol("pass"),
		asm.Return(),
	}})
	must("load an XDP program", err)
	mode := link.XDPDriverMode
	if x.generic {
		mode = link.XDPGenericMode
	}
	x.link, err = link.AttachXDP(link.XDPOptions{Program: program, Interface: device, Flags: mode})
	must("attach an XDP program", err)
}

// send writes a frame and wakes the kernel until it has taken the frame. It first reclaims the frames sent before.
func (x *xdpSocket) send(payload []byte) {
	atomic.StoreUint32(x.completion.consumer, atomic.LoadUint32(x.completion.producer))
	address := uint64(xdpRingLen+*x.out.producer%xdpRingLen) * xdpFrameLen
	writeFrame(x.memory[address:][:frameLen], x.own, x.peer, payload)
	x.out.push(unix.XDPDesc{Addr: address, Len: frameLen})
	for *x.out.producer != atomic.LoadUint32(x.out.consumer) {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(x.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN && errno != unix.EBUSY && errno != unix.EINTR {
			must("sendto on AF_XDP", errno)
		}
	}
}

func (x *xdpSocket) receive() []byte {
	if x.holds {
		x.fill.push(x.held &^ (xdpFrameLen - 1))
	}
	next := *x.in.consumer
	for atomic.LoadUint32(x.in.producer) == next {
		if x.busyPoll {
			_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(x.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0) // polls the device
		}
	}
	d := x.in.entries[next%xdpRingLen]
	atomic.StoreUint32(x.in.consumer, next+1)
	x.held, x.holds = d.Addr, true
	payload, err := readFrame(x.memory[d.Addr:][:d.Len], x.peer, x.own)
	must("AF_XDP", err)
	return payload
}

func (x *xdpSocket) flush() {}

// check confirms that the socket received and sent all datagrams in the right mode, and that the kernel's UDP saw none.
func (x *xdpSocket) check(total int, c counts) {
	var s unix.XDPStatistics
	length := unsafe.Sizeof(s)
	x.option(unix.SYS_GETSOCKOPT, unix.XDP_STATISTICS, unsafe.Pointer(&s), uintptr(unsafe.Pointer(&length)))
	s.Rx_fill_ring_empty_descs, s.Tx_ring_empty_descs = 0, 0 // the kernel looked for entries and found none
	in, out := int(*x.in.producer), int(*x.completion.producer)
	if in != total || out != total || s != (unix.XDPStatistics{}) || c.received != 0 || c.sent != 0 {
		log.Fatalf("AF_XDP received %d and sent %d of %d datagrams: %+v; %+v", in, out, total, s, c)
	}
	text, err := exec.Command("ip", "-json", "link", "show", "dev", deviceName).Output()
	must("ip", err)
	var devices [1]struct{ XDP struct{ Mode int } } // 1 is the driver's mode, 2 the generic one
	must("ip", json.Unmarshal(text, &devices))
	if mode := devices[0].XDP.Mode; mode == 0 || (mode == 2) != x.generic {
		log.Fatalf("wrong mode of XDP: %s", text)
	}
}
