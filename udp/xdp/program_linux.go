package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

const (
	// maxSlots is the maximum number of local addresses on a device, and maxQueues that of its receive queues.
	maxSlots, maxQueues = 1024, 64
	// frameLen is the size of a frame's memory. The kernel reserves frameHeadroom bytes at its beginning.
	frameLen, frameHeadroom = 2048, 256
	// maxFrame is the length of the longest frame that fits.
	maxFrame = frameLen - frameHeadroom
)

// program redirects the datagrams for local addresses to AF_XDP sockets.
type program struct {
	*ebpf.Program
	// slots maps each local address to its slot. Queue q of slot s is entry s*maxQueues+q of sockets.
	slots, sockets *ebpf.Map
	// passed counts, for each slot, the datagrams left to the kernel's socket. Its memory is shared with the kernel.
	passed *ebpf.Map
}

// slotKey is the key of a local address: an IPv6 or mapped IPv4 address and a port, both as on the wire.
type slotKey [24]byte

// newSlotKey returns the key of an address in the form in which the program builds it from the headers of a frame.
func newSlotKey(addr netip.AddrPort) (k slotKey) {
	ip := addr.Addr().As16()
	copy(k[:], ip[:])
	binary.BigEndian.PutUint16(k[16:], addr.Port())
	return k
}

// newProgram loads the program and creates its maps. With stamps, it puts the value of passed in front of each frame.
func newProgram(stamps bool) (_ *program, err error) {
	p := &program{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for _, m := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&p.slots, ebpf.MapSpec{Name: "zrlmpi_slots", Type: ebpf.Hash, KeySize: uint32(len(slotKey{})), ValueSize: 4,
			MaxEntries: maxSlots}},
		{&p.sockets, ebpf.MapSpec{Name: "zrlmpi_sockets", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4,
			MaxEntries: maxSlots * maxQueues}},
		{&p.passed, ebpf.MapSpec{Name: "zrlmpi_passed", Type: ebpf.Array, KeySize: 4, ValueSize: 8,
			MaxEntries: maxSlots, Flags: mmapable}},
	} {
		if *m.to, err = ebpf.NewMap(&m.spec); err != nil {
			return nil, fmt.Errorf("creating map %s: %w", m.spec.Name, err)
		}
	}
	spec := ebpf.ProgramSpec{Name: "zrlmpi", Type: ebpf.XDP, License: "Apache-2.0", Instructions: p.instructions(stamps)}
	if !stamps {
		spec.Flags = hasFragments
	}
	p.Program, err = ebpf.NewProgram(&spec)
	if errors.Is(err, unix.EINVAL) && spec.Flags != 0 { // Linux before 5.18
		spec.Flags = 0
		p.Program, err = ebpf.NewProgram(&spec)
	}
	if err != nil {
		return nil, fmt.Errorf("loading the BPF program: %w", err)
	}
	return p, nil
}

const (
	// mmapable is BPF_F_MMAPABLE.
	mmapable = 1 << 10
	// hasFragments is BPF_F_XDP_HAS_FRAGS: the program also accepts frames that occupy several buffers. Drivers otherwise
	// refuse it on a device with a large MTU, and a large MTU while it is attached. All headers are in the first buffer.
	hasFragments = 1 << 5
)

// xdpPass is the result by which the program leaves a frame to the kernel.
const xdpPass = 2

// Offsets in struct xdp_md.
const (
	contextData     = 0
	contextDataEnd  = 4
	contextDataMeta = 8
	contextQueue    = 16
)

// stampLen is the length of the value in front of a frame.
const stampLen = 8

// keyAt and indexAt are the positions of the slotKey and of a slot on the stack.
const (
	keyAt   = -int16(len(slotKey{}))
	indexAt = keyAt - 8
)

// swapped returns the value of a 16-bit field in network byte order as loaded by this processor.
func swapped(v uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)))
}

// instructions returns the program. It reads the headers of a frame, builds the slotKey of its destination on the
// stack, and redirects the frame if that key has a slot and the frame fits.
//
// R6 holds the context, R7 the beginning of the frame, R8 its end, and R9 first the length of the IP packet and then
// the slot.
func (p *program) instructions(stamps bool) asm.Instructions {
	var stamp asm.Instructions
	if stamps {
		stamp = p.stamp()
	}
	return slices.Concat(start(), readIPv6(), readIPv4(), p.lookUp(), stamp, p.redirect())
}

// start distinguishes the versions of IP.
func start() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R7, asm.R6, contextData, asm.Word),
		asm.LoadMem(asm.R8, asm.R6, contextDataEnd, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Add.Imm(asm.R2, ethernetLen+ipv4Len+udpLen),
		asm.JGT.Reg(asm.R2, asm.R8, "pass"),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, keyAt, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, keyAt+8, asm.R1, asm.DWord),
		asm.StoreMem(asm.RFP, keyAt+16, asm.R1, asm.DWord),
		asm.LoadMem(asm.R3, asm.R7, 12, asm.Half),
		asm.JEq.Imm(asm.R3, swapped(etherTypeIPv4), "ipv4"),
		asm.JNE.Imm(asm.R3, swapped(etherTypeIPv6), "pass"),
	}
}

// readIPv6 builds the key of an IPv6 datagram without extension headers, and thus not of a fragment.
func readIPv6() asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Add.Imm(asm.R2, maxHeaders),
		asm.JGT.Reg(asm.R2, asm.R8, "pass"),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+6, asm.Byte),
		asm.JNE.Imm(asm.R1, protocolUDP, "pass"),
		asm.LoadMem(asm.R9, asm.R7, ethernetLen+4, asm.Half), // length of the datagram
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+ipv6Len+4, asm.Half),
		asm.JNE.Reg(asm.R1, asm.R9, "pass"),
		asm.HostTo(asm.BE, asm.R9, asm.Half),
		asm.JLT.Imm(asm.R9, udpLen, "pass"),
		asm.Add.Imm(asm.R9, ipv6Len),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+24, asm.DWord),
		asm.StoreMem(asm.RFP, keyAt, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+32, asm.DWord),
		asm.StoreMem(asm.RFP, keyAt+8, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+ipv6Len+2, asm.Half),
		asm.StoreMem(asm.RFP, keyAt+16, asm.R1, asm.Half),
		asm.Ja.Label("look up"),
	}
}

// readIPv4 builds the key of an IPv4 datagram without options that is not a fragment.
func readIPv4() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.R7, ethernetLen, asm.Byte).WithSymbol("ipv4"),
		asm.JNE.Imm(asm.R1, 0x45, "pass"),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+9, asm.Byte),
		asm.JNE.Imm(asm.R1, protocolUDP, "pass"),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+6, asm.Half),
		asm.And.Imm(asm.R1, swapped(0xbfff)), // all but "don't fragment"
		asm.JNE.Imm(asm.R1, 0, "pass"),
		asm.LoadMem(asm.R9, asm.R7, ethernetLen+2, asm.Half), // length of the packet
		asm.HostTo(asm.BE, asm.R9, asm.Half),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+ipv4Len+4, asm.Half),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.JLT.Imm(asm.R1, udpLen, "pass"),
		asm.Add.Imm(asm.R1, ipv4Len),
		asm.JNE.Reg(asm.R1, asm.R9, "pass"),
		asm.Mov.Imm(asm.R1, 0xffff),
		asm.StoreMem(asm.RFP, keyAt+10, asm.R1, asm.Half),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+16, asm.Word),
		asm.StoreMem(asm.RFP, keyAt+12, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R7, ethernetLen+ipv4Len+2, asm.Half),
		asm.StoreMem(asm.RFP, keyAt+16, asm.R1, asm.Half),
	}
}

// lookUp replaces the length in R9 by the slot of the key, if the frame fits.
func (p *program) lookUp() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapPtr(asm.R1, p.slots.FD()).WithSymbol("look up"),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, int32(keyAt)),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Reg(asm.R1, asm.R9),
		asm.LoadMem(asm.R9, asm.R0, 0, asm.Word), // slot
		asm.JGT.Imm(asm.R1, maxFrame-ethernetLen, "count"),
	}
}

// stamp puts the value of passed in front of the frame.
func (p *program) stamp() asm.Instructions {
	return asm.Instructions{
		asm.StoreMem(asm.RFP, indexAt, asm.R9, asm.Word),
		asm.LoadMapPtr(asm.R1, p.passed.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, int32(indexAt)),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "count"),
		asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, -stampLen),
		asm.FnXdpAdjustMeta.Call(),
		asm.JNE.Imm(asm.R0, 0, "count"),
		asm.LoadMem(asm.R2, asm.R6, contextDataMeta, asm.Word),
		asm.LoadMem(asm.R3, asm.R6, contextData, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, stampLen),
		asm.JGT.Reg(asm.R4, asm.R3, "count"),
		asm.StoreMem(asm.R2, 0, asm.R7, asm.DWord),
	}
}

// redirect redirects the frame, or counts it in passed.
func (p *program) redirect() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R2, asm.R6, contextQueue, asm.Word),
		asm.JGE.Imm(asm.R2, maxQueues, "count"),
		asm.Mov.Reg(asm.R3, asm.R9),
		asm.Mul.Imm(asm.R3, maxQueues),
		asm.Add.Reg(asm.R2, asm.R3),
		asm.LoadMapPtr(asm.R1, p.sockets.FD()),
		asm.Mov.Imm(asm.R3, xdpPass), // if the queue has no socket
		asm.FnRedirectMap.Call(),
		asm.JNE.Imm(asm.R0, xdpPass, "exit"),

		asm.StoreMem(asm.RFP, indexAt, asm.R9, asm.Word).WithSymbol("count"),
		asm.LoadMapPtr(asm.R1, p.passed.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, int32(indexAt)),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "pass"),
		asm.Mov.Imm(asm.R1, 1),
		asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return().WithSymbol("exit"),
	}
}

// set makes the program redirect the datagrams that queue receives for a slot to the socket fd.
func (p *program) set(slot, queue, fd int) error {
	return p.sockets.Put(uint32(slot*maxQueues+queue), uint32(fd))
}

func (p *program) close() {
	if p.Program != nil {
		p.Program.Close()
	}
	for _, m := range []*ebpf.Map{p.slots, p.sockets, p.passed} {
		if m != nil {
			m.Close()
		}
	}
}
