package capture

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// passes runs the filter program on a packet, as the kernel does, and reports whether the packet passes.
func passes(t *testing.T, o Options, ethernet bool, packet []byte) bool {
	t.Helper()
	raw, err := o.liveFilter(ethernet)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 4096 {
		t.Fatalf("%d instructions are more than the kernel takes", len(raw))
	}
	program, whole := bpf.Disassemble(raw)
	if !whole {
		t.Fatal("the filter holds unknown instructions")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

func TestLiveFilter(t *testing.T) {
	dns, other := netip.MustParseAddrPort("10.1.0.9:53"), netip.MustParseAddrPort("10.1.0.9:40000")
	dns6 := netip.MustParseAddrPort("[fd00::9]:53")
	udp, tcp := capturetest.UDP(addrA, other, make([]byte, 900)), capturetest.TCP(other, addrB, capturetest.Segment{})
	udp6, tcp6 := capturetest.UDP(addrA6, dns6, make([]byte, 900)), capturetest.TCP(dns6, addrB6, capturetest.Segment{})
	options := append(append([]byte{0x47}, udp[1:20]...), 1, 1, 1, 1, 1, 1, 1, 0)
	options = append(options, udp[20:]...)
	var scattered []uint16
	for p := range uint16(100) {
		scattered = append(scattered, 3*p)
	}
	icmp := bytes.Clone(udp)
	icmp[9] = 1
	extended := capturetest.IP(addrA6.Addr(), addrB6.Addr(), 60, append([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udp6[40:]...))
	for name, c := range map[string]struct {
		o    Options
		ip   []byte
		want bool
	}{
		"UDP from a port":       {Options{}, udp, true},
		"TCP to a port":         {Options{}, tcp, true},
		"IPv6 UDP":              {Options{}, udp6, true},
		"IPv6 TCP":              {Options{}, tcp6, true},
		"IP options":            {Options{}, options, true},
		"IPv6 extension":        {Options{}, extended, true},
		"first fragment":        {Options{}, capturetest.Fragments(udp, 1, 480)[0], true},
		"second fragment":       {Options{}, capturetest.Fragments(udp, 1, 480)[1], true},
		"IPv6 fragment":         {Options{}, capturetest.Fragments(udp6, 1, 480)[1], true},
		"VXLAN":                 {Options{}, inVXLAN(udp, vtepB), true},
		"VXLAN on Linux's port": {Options{}, inVXLAN(udp, netip.AddrPortFrom(vtepB.Addr(), 8472)), true},
		"last port":             {Options{}, capturetest.UDP(dns, netip.AddrPortFrom(addrA.Addr(), 2845), nil), true},
		"behind the last port":  {Options{}, capturetest.UDP(dns, netip.AddrPortFrom(addrA.Addr(), 2846), nil), false},
		"before the first port": {Options{}, capturetest.UDP(dns, netip.AddrPortFrom(addrA.Addr(), 2717), nil), false},
		"other ports":           {Options{}, capturetest.UDP(dns, other, nil), false},
		"other TCP ports":       {Options{}, capturetest.TCP(dns, other, capturetest.Segment{}), false},
		"other IPv6 ports":      {Options{}, capturetest.UDP(dns6, netip.AddrPortFrom(dns6.Addr(), 99), nil), false},
		"ICMP":                  {Options{}, icmp, false},
		"chosen port":           {Options{Ports: []uint16{53}}, capturetest.UDP(dns, other, nil), true},
		"not chosen":            {Options{Ports: []uint16{53}}, udp, false},
		"lowest and highest": {Options{Ports: []uint16{0, 65535}},
			capturetest.UDP(netip.AddrPortFrom(dns.Addr(), 65535), other, nil), true},
		"all ports":              {Options{AllPorts: true}, capturetest.UDP(dns, other, nil), true},
		"all ports, but not all": {Options{AllPorts: true}, icmp, false},
		"more ports than fit":    {Options{Ports: scattered}, capturetest.UDP(dns, other, nil), true},
		"more ports, still ICMP": {Options{Ports: scattered}, icmp, false},
	} {
		if got := passes(t, c.o, false, c.ip); got != c.want {
			t.Errorf("%s, IP: %v", name, got)
		}
		for tags := range filterVLANTags + 1 {
			frame := capturetest.Frame(capturetest.Ethernet, c.ip, []uint16{5, 6}[:tags]...)
			if got := passes(t, c.o, true, frame); got != c.want {
				t.Errorf("%s, behind %d tags: %v", name, tags, got)
			}
		}
	}
	arp := capturetest.Frame(capturetest.Ethernet, udp)
	arp[13] = 6
	if passes(t, Options{AllPorts: true}, true, arp) || passes(t, Options{}, false, nil) ||
		passes(t, Options{}, true, arp[:13]) {
		t.Error("ARP or nothing passes")
	}
}

// The filter passes every packet that the decoder would read, including packets in whose headers the test modifies
// bytes.
func TestLiveFilterLetsNoLessPass(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	read := 0
	for _, e := range encapsulations {
		if e.linkType != capturetest.Ethernet && e.linkType != capturetest.Raw {
			continue
		}
		for _, ip := range [][]byte{capturetest.UDP(addrA, addrB, make([]byte, 600)),
			capturetest.UDP(addrA6, addrB6, make([]byte, 600))} {
			if ip[0]>>4 == 6 && e.name != "vlan" && e.name != "qinq" && e.name != "raw" {
				continue
			}
			for _, frame := range e.wrap(ip) {
				for try := range 300 {
					frame := bytes.Clone(frame)
					if try > 0 {
						frame[r.IntN(min(len(frame), 80))] = byte(r.Uint32())
					}
					d := newDecoder(Options{})
					rec := pcapng.Record{Time: noon, Link: pcapng.LinkType(e.linkType), Data: frame}
					var u pcapng.Unit
					if v := d.decode(&rec, 1, &u); v > unitPending {
						continue
					}
					read++
					if !passes(t, Options{}, e.linkType == capturetest.Ethernet, frame) {
						t.Fatalf("%s: % x is read, but filtered", e.name, frame[:60])
					}
				}
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d packets were read", read)
	}
}

func TestPortRanges(t *testing.T) {
	got := portRanges([]uint16{5, 65535, 3, 4, 4, 0, 9, 65534})
	if want := []portRange{{0, 0}, {3, 5}, {9, 9}, {65534, 65535}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
