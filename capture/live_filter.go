package capture

import (
	"slices"

	"golang.org/x/net/bpf"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

const (
	// maxFilterRanges is the maximum number of port ranges in the kernel's filter, which is limited to 4096
	// instructions. With more ranges, the filter passes all UDP and TCP packets, and the decoder selects packets by
	// port.
	maxFilterRanges = 32
	// filterVLANTags is the number of VLAN tags that the filter skips, in addition to the outermost one, which the
	// kernel removes.
	filterVLANTags = 2
)

// portRange is a range of ports that includes both of its ends.
type portRange struct{ from, to uint16 }

// portRanges merges adjacent ports.
func portRanges(ports []uint16) []portRange {
	sorted := slices.Compact(slices.Sorted(slices.Values(ports)))
	var ranges []portRange
	for _, p := range sorted {
		if n := len(ranges); n > 0 && uint32(ranges[n-1].to)+1 == uint32(p) {
			ranges[n-1].to = p
			continue
		}
		ranges = append(ranges, portRange{p, p})
	}
	return ranges
}

// liveFilter returns the filter program for the kernel. It passes UDP and TCP on the ports, VXLAN, and all IP
// fragments, because only the first fragment contains the ports. It drops only packets that the decoder would ignore,
// but may pass some of them. Packets start with an Ethernet header if ethernet is true, and otherwise with an IP
// header.
func (o Options) liveFilter(ethernet bool) ([]bpf.RawInstruction, error) {
	var ranges []portRange
	if !o.AllPorts {
		ranges = append(portRanges(o.ports()), portRange{vxlanPort, vxlanPort},
			portRange{vxlanPortLinux, vxlanPortLinux})
		if len(ranges) > maxFilterRanges {
			ranges = nil
		}
	}
	var program []bpf.Instruction
	if !ethernet {
		v4, v6 := filterIPv4(0, ranges), filterIPv6(0, ranges)
		program = append(program,
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipFalse: 1},
			bpf.Jump{Skip: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipFalse: 1},
			bpf.Jump{Skip: uint32(len(v4)) + 1},
			filterDrop,
		)
		program = append(program, v4...)
		program = append(program, v6...)
		return bpf.Assemble(program)
	}
	for tags := range uint32(filterVLANTags + 1) {
		ip := ethernetHeader + vlanTag*tags
		v4, v6 := filterIPv4(ip, ranges), filterIPv6(ip, ranges)
		program = append(program,
			bpf.LoadAbsolute{Off: ip - 2, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherIPv4, SkipFalse: 1},
			bpf.Jump{Skip: 7},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherIPv6, SkipFalse: 1},
			bpf.Jump{Skip: 5 + uint32(len(v4))},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherVLAN, SkipTrue: 3},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherQinQ, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherQinQ2, SkipTrue: 1},
			filterDrop,
			bpf.Jump{Skip: uint32(len(v4) + len(v6))},
		)
		program = append(program, v4...)
		program = append(program, v6...)
	}
	return bpf.Assemble(append(program, filterDrop))
}

var (
	filterDrop = bpf.RetConstant{Val: 0}
	filterPass = bpf.RetConstant{Val: pcapng.MaxPacket}
)

// filterIPv4 returns filter instructions for an IPv4 packet at offset ip. Execution never falls through to the
// instructions after them.
func filterIPv4(ip uint32, ranges []portRange) []bpf.Instruction {
	ports := filterPorts(ip, ranges)
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: ip + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipFalse: 1},
		filterPass,
		bpf.LoadMemShift{Off: ip},
		bpf.LoadAbsolute{Off: ip + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoUDP, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protoTCP, SkipTrue: 1},
		filterDrop,
	}, ports...)
}

// filterIPv6 returns filter instructions for an IPv6 packet at offset ip. They pass packets with extension headers.
func filterIPv6(ip uint32, ranges []portRange) []bpf.Instruction {
	ports := filterPorts(ip, ranges)
	load := bpf.LoadAbsolute{Off: ip + 6, Size: 1}
	is := func(proto uint32, skip uint8) bpf.Instruction {
		return bpf.JumpIf{Cond: bpf.JumpEqual, Val: proto, SkipTrue: skip}
	}
	return append([]bpf.Instruction{
		load,
		is(protoUDP, 9), is(protoTCP, 8),
		is(protoHopByHop, 6), is(protoRouting, 5), is(protoFragment, 4), is(protoAH, 3), is(protoOptions, 2),
		is(protoMobility, 1),
		filterDrop,
		filterPass,
		bpf.LoadConstant{Dst: bpf.RegX, Val: ipv6Header},
	}, ports...)
}

// filterPorts returns filter instructions for the ports of a packet. The IP header is at offset ip, and register X
// holds its length.
func filterPorts(ip uint32, ranges []portRange) []bpf.Instruction {
	if ranges == nil {
		return []bpf.Instruction{filterPass}
	}
	var program []bpf.Instruction
	for _, off := range []uint32{ip, ip + 2} {
		program = append(program, bpf.LoadIndirect{Off: off, Size: 2})
		for _, r := range ranges {
			program = append(program,
				bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(r.from), SkipFalse: 2},
				bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: uint32(r.to), SkipTrue: 1},
				filterPass)
		}
	}
	return append(program, filterDrop)
}
