package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

func TestPcapVariants(t *testing.T) {
	precise := noon.Add(789)
	c := capturetest.New(capturetest.Raw).AddUDP(precise, addrA, addrB, []byte("ping")).AddUDP(noon.Add(time.Second),
		addrB,
		addrA, nil)
	for _, f := range []capturetest.Format{{}, {BigEndian: true}, {Nano: true}, {BigEndian: true, Nano: true}} {
		units := mustRead(t, c.Pcap(f))
		want := noon
		if f.Nano {
			want = precise
		}
		if len(units) != 2 || units[0].Time != want || string(units[0].Data) != "ping" ||
			units[1].Time != noon.Add(time.Second) {
			t.Errorf("%+v: %+v", f, units)
		}
	}
	// The upper bits of the link type describe a frame check sequence.
	file := c.Pcap(capturetest.Format{})
	file[23] = 0x24
	if units := mustRead(t, file); len(units) != 2 {
		t.Errorf("with a frame check sequence: %d units", len(units))
	}
}

// Each interface of a pcapng file has its own link type and clock.
func TestPcapngInterfaces(t *testing.T) {
	c := &capturetest.Capture{Interfaces: []capturetest.Interface{
		{LinkType: capturetest.Ethernet},
		{LinkType: capturetest.Raw, Resolution: 9},
		{LinkType: capturetest.SLL, Resolution: 3, Offset: 1000},
		{LinkType: 105}, // a wireless network
		{LinkType: capturetest.SLL2, Resolution: 0x80 | 20},
	}}
	for i, iface := range c.Interfaces {
		ip := capturetest.UDP(addrA, addrB, []byte{byte(i)})
		frame := make([]byte, 60)
		if iface.LinkType != 105 {
			frame = capturetest.Frame(iface.LinkType, ip)
		}
		c.Packets = append(c.Packets,
			capturetest.Packet{Time: noon.Add(time.Duration(i)*time.Second + 789), Data: frame, Interface: i})
	}
	for _, f := range []capturetest.Format{{}, {BigEndian: true}} {
		units, stats, err := readAll(t, Options{}, c.Pcapng(f))
		if err != io.EOF {
			t.Fatal(err)
		}
		want := []time.Duration{0, time.Second + 789, 2*time.Second - 456*time.Microsecond, 4*time.Second + 789}
		if len(units) != len(want) || stats.Packets != 5 || stats.Skipped["link_type_105"] != 1 {
			t.Fatalf("%d units, %+v", len(units), stats)
		}
		for i, u := range units {
			if diff := u.Time.Sub(noon.Add(want[i])).Abs(); diff > time.Microsecond {
				t.Errorf("packet %d is at %v, want %v", u.Packet, u.Time, noon.Add(want[i]))
			}
		}
		// A second section has other interfaces, and may have another byte order.
		other := c.Pcapng(capturetest.Format{BigEndian: !f.BigEndian})
		if n := len(mustRead(t, append(c.Pcapng(f), other...))); n != 8 {
			t.Errorf("two sections: %d units", n)
		}
	}
}

// Constants of the pcapng format, and a limit of package pcapng.
const (
	blockSection   = 0x0a0d0d0a
	byteOrderMagic = 0x1a2b3c4d
	maxInterfaces  = 1 << 16
)

// block returns a little-endian pcapng block that claims to be total bytes long.
func block(kind, total uint32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, total)
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, total)
}

func words(w ...uint32) []byte {
	var b []byte
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// A reader does not trust lengths: it returns an error immediately, without a large allocation.
func TestHostileLengths(t *testing.T) {
	c := capturetest.New(capturetest.Raw).AddUDP(noon, addrA, addrB, make([]byte, 32))
	pcap, ng := c.Pcap(capturetest.Format{}), c.Pcapng(capturetest.Format{})
	with := func(file []byte, more ...[]byte) []byte {
		return append(bytes.Clone(file), bytes.Join(more, nil)...)
	}
	const huge = 0xfffffff0
	iface := words(101, 0)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"record of 4 GiB":       {with(pcap, words(0, 0, huge, huge)), "a packet claims 4294967280 bytes"},
		"record over the limit": {with(pcap, words(0, 0, 256<<10+1, 1)), "a packet claims 262145 bytes"},
		"block of 0":            {with(ng, block(6, 0, nil)), "a block claims 0 bytes"},
		"block of 8":            {with(ng, block(6, 8, nil)), "a block claims 8 bytes"},
		"block of odd length":   {with(ng, block(6, 33, make([]byte, 60))), "a block claims 33 bytes"},
		"section of 12": {with(ng, block(blockSection, 12, words(byteOrderMagic, 1, 0))),
			"a section header claims 12 bytes"},
		"section without order": {with(ng, block(blockSection, 28, words(0, 1, 0, 0))),
			"a section has no byte order"},
		"section of version 2": {with(ng, block(blockSection, 28, words(byteOrderMagic, 2, 0, 0))),
			"pcapng of version 2.0"},
		"interface of 16": {with(ng, block(1, 16, words(1))), "the description of an interface claims 16"},
		"interface of 4 GiB": {with(ng, block(1, huge, iface)),
			"the description of an interface claims 4294967280"},
		"option beyond its block": {with(ng, block(1, 24, append(iface, 9, 0, 0xff, 0xff))),
			"an option of an interface claims 65535 bytes of 0"},
		"clock of 10^-20": {with(ng, block(1, 28, append(iface, 9, 0, 1, 0, 20, 0, 0, 0))),
			"has resolution 0x14"},
		"packet block of 12": {with(ng, block(6, 12, nil), make([]byte, 40)), "a packet's block claims 12 bytes"},
		"no such interface":  {with(ng, block(6, 32, words(7, 0, 0, 0, 0))), "a packet is of interface 7 of 1"},
		"packet of 4 GiB": {with(ng, block(6, huge, words(0, 0, 0, huge, huge))),
			"a packet claims 4294967280 bytes"},
		"packet beyond its block": {with(ng, block(6, 32, words(0, 0, 0, 4, 4))),
			"a packet of 4 bytes is in a block of 32"},
		"other end of block": {with(ng, words(99, 16, 0, 20), make([]byte, 40)),
			"a block of 16 bytes ends as one of 20"},
	} {
		before := allocated()
		units, _, err := readAll(t, Options{}, c.file)
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) || format.Packet != 1 || len(units) != 1 {
			t.Errorf("%s: %d units, %v; want %q", name, len(units), err, c.want)
			continue
		}
		if format.Offset < int64(min(len(pcap), len(ng))) || format.Offset > int64(len(c.file)) {
			t.Errorf("%s: offset %d in %d bytes", name, format.Offset, len(c.file))
		}
		if n := allocated() - before; n > 4<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
	for name, file := range map[string][]byte{
		"unknown block of 4 GiB": with(ng, block(99, huge, nil)),
		"section of 4 GiB":       with(ng, block(blockSection, huge, words(byteOrderMagic, 1, 0, 0))),
		"record at the limit":    with(pcap, words(0, 0, 256<<10, 1)),
	} {
		units, _, err := readAll(t, Options{}, file)
		var cut *TruncatedError
		if !errors.As(err, &cut) || len(units) != 1 {
			t.Errorf("%s: %d units, %v", name, len(units), err)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A file may declare many interfaces, but a reader limits their number.
func TestTooManyInterfaces(t *testing.T) {
	ng := capturetest.New(capturetest.Raw).Pcapng(capturetest.Format{})
	one := block(1, 20, words(101, 0))
	_, _, err := readAll(t, Options{}, append(ng, bytes.Repeat(one, maxInterfaces)...))
	var format *FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), "more than 65536 interfaces") {
		t.Errorf("%v", err)
	}
}

// Simple packet blocks have no time, and obsolete packet blocks have a short interface number.
func TestOtherPacketBlocks(t *testing.T) {
	ng := capturetest.New(capturetest.Raw).AddUDP(noon, addrA, addrB, []byte("1")).Pcapng(capturetest.Format{})
	ip := capturetest.UDP(addrA, addrB, []byte("5678")) // of 32 bytes
	ng = append(ng, block(3, 12+4+32, append(words(32), ip...))...)
	ticks := uint64(noon.Add(time.Second).UnixMicro())
	ng = append(ng, block(2, 12+20+32, append(words(7<<16, uint32(ticks>>32), uint32(ticks), 32, 40), ip...))...)
	units := mustRead(t, ng)
	if len(units) != 3 || !bytes.Equal(units[1].Data, []byte("5678")) || units[1].Time != noon ||
		units[2].Time != noon.Add(time.Second) || units[2].Packet != 3 {
		t.Errorf("%+v", units)
	}
}
