package main

var (
	pathOrder  = test{"the tests of the order of the path", []string{"./udp", "-run", "TestPath"}}
	frames     = test{"the tests of frames", []string{"./udp/xdp", "-run", "Frames|Checksum|Parse"}}
	bpfProgram = test{"the test of the BPF program", []string{"./udp/xdp", "-run", "TestProgram$"}}
	segmenting = test{"the tests of transports, as root", []string{"./udp/xdp", "-run", "TestTransport$/^receiver$"}}
	overtaking = test{"its own test, as root", []string{"./udp/xdp", "-run", "TestOvertaking$"}}
	filters    = test{"its own test, as root", []string{"./udp/xdp", "-run", "TestFilters$"}}
	neighbours = test{"its own test, as root", []string{"./udp/xdp", "-run", "TestStaleNeighbour$"}}
)

// Rules about datagrams past the kernel's socket.
func init() {
	mutations = append(mutations, []mutation{
		{"AF_XDP: a datagram waits for the bypassed ones before it", "udp/path_linux.go",
			" && s.received[s.next].After <= s.passed", "", []test{pathOrder}},
		{"AF_XDP: datagrams of several queues are in the order of their stamps", "udp/path_linux.go",
			"slices.SortStableFunc(s.received[:s.count], byArrival)", "_ = byArrival", []test{pathOrder}},
		{"AF_XDP: all datagrams of a message take the same way", "udp/path_linux.go",
			"usesPath = s.messageByPath[peer]", "_ = usesPath", []test{pathOrder}},
		{"AF_XDP: the path does not overtake the socket", "udp/path_linux.go",
			" && s.mmsgSocket.hasUnsent() {", " && false {", []test{overtaking}},
		{"AF_XDP: a UDP checksum is verified", "udp/xdp/frame.go",
			"case fold(sum(pseudoSum, udp)) == 0xffff:", "case true:", []test{frames}},
		{"AF_XDP: a partial checksum is accepted only from this host", "udp/xdp/frame.go",
			"case partial && check == fold(pseudoSum):", "case check == fold(pseudoSum):", []test{frames}},
		{"AF_XDP: fragments are left to the kernel", "udp/xdp/program_linux.go",
			"asm.And.Imm(asm.R1, swapped(0xbfff))", "asm.And.Imm(asm.R1, 0)", []test{bpfProgram}},
		{"AF_XDP: no piece fits into a frame", "udp/offload_linux.go",
			"\tif total < minPiece {\n", "\tif total < 0 {\n", []test{segmenting}},
		{"AF_XDP: path: auto does not bypass rules", "udp/xdp/filter_linux.go",
			"\t\tif len(rules) > 0 {\n", "\t\tif len(rules) < 0 {\n", []test{filters}},
		{"AF_XDP: a stale neighbour that is used is confirmed", "udp/xdp/route_linux.go",
			"r.used[i].Swap(false)", "r.used[i].Swap(false) && false",
			[]test{neighbours}},
	}...)
}
