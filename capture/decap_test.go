package capture

import (
	"bytes"
	"io"
	"net/netip"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// one returns the units of a single packet, or why the packet was skipped.
func one(t *testing.T, o Options, linkType int, frame []byte, cut int) ([]pcapng.Unit, string) {
	t.Helper()
	c := capturetest.New(linkType).Add(noon, frame)
	c.Packets[0].Unrecorded = cut
	units, stats, err := readAll(t, o, c.Pcapng(capturetest.Format{}))
	if err != io.EOF || stats.Units != int64(len(units)) {
		t.Fatalf("%d units, %+v, %v", len(units), stats, err)
	}
	for reason, n := range stats.Skipped {
		if n != 1 {
			t.Fatalf("skipped: %v", stats.Skipped)
		}
		return units, reason
	}
	return units, ""
}

func TestSkipReasons(t *testing.T) {
	datagram := capturetest.UDP(addrA, addrB, make([]byte, 32))
	edit := func(ip []byte, at int, v ...byte) []byte {
		ip = bytes.Clone(ip)
		copy(ip[at:], v)
		return ip
	}
	stream := capturetest.TCP(addrA, addrB, capturetest.Segment{Payload: make([]byte, 32)})
	tunnel := datagram
	for range maxTunnels + 1 {
		tunnel = inVXLAN(tunnel, vtepB)
	}
	extensions := func(n int) []byte {
		payload := bytes.Repeat([]byte{60, 0, 1, 4, 0, 0, 0, 0}, n)
		copy(payload[len(payload)-8:], []byte{17})
		return capturetest.IP(addrA6.Addr(), addrB6.Addr(), 60, append(payload, datagram[20:]...))
	}
	ether := func(ip []byte, vlans ...uint16) []byte { return capturetest.Frame(capturetest.Ethernet, ip, vlans...) }
	for name, c := range map[string]struct {
		link  int
		frame []byte
		want  string
	}{
		"good":                     {1, ether(datagram), ""},
		"good TCP":                 {1, ether(stream), ""},
		"good with extensions":     {101, extensions(15), ""},
		"empty frame":              {1, nil, "malformed"},
		"short Ethernet":           {1, make([]byte, 13), "malformed"},
		"short SLL":                {113, make([]byte, 15), "malformed"},
		"short SLL2":               {276, make([]byte, 19), "malformed"},
		"short loopback":           {0, make([]byte, 3), "malformed"},
		"empty loopback":           {108, make([]byte, 4), "malformed"},
		"empty raw":                {101, nil, "malformed"},
		"ARP":                      {1, edit(ether(datagram), 12, 8, 6), "not_ip"},
		"short tag":                {1, ether(datagram, 7)[:17], "malformed"},
		"four tags":                {1, ether(datagram, 1, 2, 3, 4), ""},
		"five tags":                {1, ether(datagram, 1, 2, 3, 4, 5), "nested_too_deep"},
		"neither IPv4 nor IPv6":    {101, []byte{0x50, 0}, "not_ip"},
		"EtherType lies":           {1, edit(ether(datagram), 14, 0x65), "malformed"},
		"unknown link type":        {105, datagram, "link_type_105"},
		"short IPv4":               {101, datagram[:19], "malformed"},
		"header of 16 bytes":       {101, edit(datagram, 0, 0x44), "malformed"},
		"header beyond the packet": {101, edit(datagram[:40], 0, 0x4f), "malformed"},
		"header beyond the length": {101, edit(datagram, 2, 0, 19), "malformed"},
		"ICMP":                     {101, edit(datagram, 9, 1), "not_udp_or_tcp"},
		"other ports":              {101, edit(datagram, 20, 0, 53, 0, 53), "other_port"},
		"other TCP ports":          {101, edit(stream, 20, 0, 22, 0, 23), "other_port"},
		"one port is enough":       {101, edit(datagram, 20, 0, 53), ""},
		"last port":                {101, edit(datagram, 20, 0, 53, 2845>>8, 2845&0xff), ""},
		"behind the last port":     {101, edit(datagram, 20, 0, 53, 2846>>8, 2846&0xff), "other_port"},
		"short UDP":                {101, edit(datagram, 2, 0, 27), "malformed"},
		"UDP length of 7":          {101, edit(datagram, 24, 0, 7), "malformed"},
		"UDP length of 0":          {101, edit(datagram, 24, 0, 0), ""},
		"short TCP":                {101, edit(stream, 2, 0, 39), "malformed"},
		"TCP header of 16 bytes":   {101, edit(stream, 32, 4<<4), "malformed"},
		"TCP header too long":      {101, edit(edit(stream[:44], 2, 0, 44), 32, 15<<4), "malformed"},
		"no TCP payload":           {101, edit(stream, 2, 0, 40), "tcp_no_data"},
		"short IPv6":               {101, extensions(1)[:39], "malformed"},
		"too many extensions":      {101, extensions(16), "nested_too_deep"},
		"extension beyond packet":  {101, edit(extensions(1), 41, 200), "malformed"},
		"short extension":          {101, extensions(1)[:44], "malformed"},
		"short VXLAN":              {101, capturetest.UDP(vtepA, vtepB, []byte{8, 0, 0, 0, 0, 0, 0}), "other_port"},
		"not VXLAN at all":         {101, capturetest.UDP(vtepA, vtepB, make([]byte, 80)), "other_port"},
		"empty VXLAN":              {101, capturetest.UDP(vtepA, vtepB, []byte{8, 0, 0, 0, 0, 0, 0, 0}), "malformed"},
		"VXLAN too deep":           {101, tunnel, "nested_too_deep"},
		"lone fragment":            {101, capturetest.Fragments(datagram, 1, 24)[0], "ip_fragment"},
		"fragment of odd length": {101, capturetest.Fragment(datagram[:20], 1, 0, true, make([]byte, 9)),
			"malformed"},
		"fragment beyond 64 KiB": {101, capturetest.Fragment(datagram[:20], 1, 65528, false, make([]byte, 9)),
			"malformed"},
		"empty fragment": {101, capturetest.Fragment(datagram[:20], 1, 8, false, nil), "malformed"},
	} {
		units, reason := one(t, Options{}, c.link, c.frame, 0)
		if reason != c.want || (len(units) == 1) != (c.want == "") {
			t.Errorf("%s: %d units, skipped as %q, want %q", name, len(units), reason, c.want)
		}
	}
	// A packet that the recorder truncated is not malformed.
	if _, reason := one(t, Options{}, 101, datagram[:24], 36); reason != "cut_short" {
		t.Errorf("cut in the UDP header: %q", reason)
	}
}

func TestOptionsPorts(t *testing.T) {
	dns := netip.MustParseAddrPort("10.1.0.9:53")
	web := netip.MustParseAddrPort("10.1.0.9:80")
	for _, c := range []struct {
		o    Options
		ip   []byte
		want bool
	}{
		{Options{Ports: []uint16{53}}, capturetest.UDP(addrA, dns, nil), true},
		{Options{Ports: []uint16{53}}, capturetest.UDP(dns, web, nil), true},
		{Options{Ports: []uint16{53}}, capturetest.UDP(addrA, web, nil), false},
		{Options{Ports: []uint16{53}}, capturetest.UDP(addrA, addrB, nil), false},
		{Options{Ports: []uint16{0, 65535}}, capturetest.UDP(netip.AddrPortFrom(web.Addr(), 65535), web, nil), true},
		{Options{AllPorts: true}, capturetest.UDP(dns, web, nil), true},
		{Options{AllPorts: true}, capturetest.TCP(dns, web, capturetest.Segment{Payload: []byte("x")}), true},
		{Options{}, capturetest.UDP(dns, web, nil), false},
	} {
		if units, _ := one(t, c.o, capturetest.Raw, c.ip, 0); (len(units) == 1) != c.want {
			t.Errorf("%+v: %d units of % x", c.o, len(units), c.ip[20:24])
		}
	}
}

// In every encapsulation, the bytes that a short snapshot length cuts off are counted.
func TestTruncatedPayload(t *testing.T) {
	payload := []byte("0123456789abcdef0123456789abcdef")
	v4, v6 := capturetest.UDP(addrA, addrB, payload), capturetest.UDP(addrA6, addrB6, payload)
	stream := capturetest.TCP(addrA, addrB, capturetest.Segment{Payload: payload})
	for name, ip := range map[string][]byte{"IPv4": v4, "IPv6": v6, "TCP": stream, "VXLAN": inVXLAN(v4, vtepB)} {
		for _, cut := range []int{0, 1, 31, 32} {
			units, reason := one(t, Options{}, capturetest.Raw, ip[:len(ip)-cut], cut)
			if len(units) != 1 || units[0].Truncated != cut || !bytes.Equal(units[0].Data, payload[:32-cut]) {
				t.Errorf("%s cut by %d: %q %+v", name, cut, reason, units)
			}
		}
	}
	// Of two lengths, the smaller one applies.
	short := bytes.Clone(v4)
	short[25] = 8 + 4
	if units, _ := one(t, Options{}, capturetest.Raw, short, 0); string(units[0].Data) != "0123" ||
		units[0].Truncated != 0 {
		t.Errorf("UDP length smaller: %+v", units)
	}
	short = bytes.Clone(v4)
	short[3] = 28 + 4
	if units, _ := one(t, Options{}, capturetest.Raw, short, 0); string(units[0].Data) != "0123" ||
		units[0].Truncated != 0 {
		t.Errorf("IP length smaller: %+v", units)
	}
}

func TestIPv6Units(t *testing.T) {
	payload := bytes.Repeat([]byte("rank to rank "), 100)
	ip := capturetest.UDP(addrA6, addrB6, payload)
	atomic := capturetest.Fragment(ip[:40], 9, 0, false, ip[40:])
	auth := append([]byte{17, 4, 0, 0}, make([]byte, 20)...)
	auth = capturetest.IP(addrA6.Addr(), addrB6.Addr(), protoAH, append(auth, ip[40:]...))
	want := pcapng.Unit{Time: noon, Src: addrA6, Dst: addrB6, Proto: pcapng.UDP, Data: payload}
	for _, link := range []int{capturetest.Ethernet, capturetest.Null, capturetest.Loop, capturetest.SLL,
		capturetest.SLL2, capturetest.IPv6} {
		c := capturetest.New(link).AddIP(noon, ip, atomic, auth).AddIP(noon, capturetest.Fragments(ip, 10, 512)...)
		units := mustRead(t, c.Pcap(capturetest.Format{}))
		for i, n := range []int64{1, 2, 3, 6} {
			want.Packet, want.Fragments, want.LongestFragment = n, 0, 0
			if n == 6 {
				want.Fragments, want.LongestFragment = 3, 512
			}
			same(t, units[i:i+1], []pcapng.Unit{want})
		}
	}
}
