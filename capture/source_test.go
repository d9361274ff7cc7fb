package capture

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

var (
	addrA  = netip.MustParseAddrPort("10.1.0.1:2718")
	addrB  = netip.MustParseAddrPort("10.1.0.2:2718")
	addrA6 = netip.MustParseAddrPort("[fd00::1]:2718")
	addrB6 = netip.MustParseAddrPort("[fd00::2]:2718")
	vtepA  = netip.MustParseAddrPort("192.0.2.1:50123")
	vtepB  = netip.MustParseAddrPort("192.0.2.2:4789")
	noon   = time.Date(2024, 5, 17, 12, 0, 0, 123456000, time.UTC)
)

// readAll reads a file from memory. It returns copies of the units, and the error at the end.
func readAll(t testing.TB, o Options, file []byte) ([]pcapng.Unit, Stats, error) {
	t.Helper()
	s, err := o.NewReader(bytes.NewReader(file), "test")
	if err != nil {
		return nil, Stats{}, err
	}
	return drainSource(s)
}

func drainSource(s Source) ([]pcapng.Unit, Stats, error) {
	var units []pcapng.Unit
	for {
		var u pcapng.Unit
		if err := s.Next(&u); err != nil {
			return units, s.Stats(), err
		}
		u.Data = append([]byte{}, u.Data...)
		units = append(units, u)
	}
}

// mustRead is like readAll but fails the test unless the recording is complete.
func mustRead(t testing.TB, file []byte) []pcapng.Unit {
	t.Helper()
	units, _, err := readAll(t, Options{}, file)
	if err != io.EOF {
		t.Fatalf("recording ended with %v", err)
	}
	return units
}

// recordings returns the captures that were recorded from deployed nodes.
func recordings(t testing.TB) map[string]*capturetest.Capture {
	t.Helper()
	paths, err := filepath.Glob("testdata/captures/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := make(map[string]*capturetest.Capture)
	for _, path := range paths {
		c, err := capturetest.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = c
	}
	return all
}

func same(t *testing.T, got, want []pcapng.Unit) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d units, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("unit %d is\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

// The units of the captures match the bytes at fixed offsets in the files.
func TestUnits(t *testing.T) {
	for name, c := range recordings(t) {
		for i, u := range mustRead(t, c.Pcap(capturetest.Format{})) {
			f := c.Packets[i].Data
			src := netip.AddrPortFrom(netip.AddrFrom4([4]byte(f[26:30])), uint16(f[34])<<8|uint16(f[35]))
			dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte(f[30:34])), uint16(f[36])<<8|uint16(f[37]))
			want := pcapng.Unit{Packet: int64(i + 1), Time: c.Packets[i].Time, Src: src, Dst: dst, Proto: pcapng.UDP,
				Data: f[42:]}
			if !reflect.DeepEqual(u, want) {
				t.Fatalf("%s: unit %d is\n%+v, want\n%+v", name, i, u, want)
			}
		}
	}
}

func TestOpenFile(t *testing.T) {
	const path = "testdata/captures/ref_mpe_echo_1000.pcap"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := mustRead(t, file)
	zipped := filepath.Join(t.TempDir(), "zipped.pcap.gz")
	if err := os.WriteFile(zipped, capturetest.Gzip(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, zipped} {
		s, err := Options{}.OpenFile(p)
		if err != nil {
			t.Fatal(err)
		}
		got, stats, err := drainSource(s)
		if err != io.EOF {
			t.Fatal(err)
		}
		same(t, got, want)
		if stats.Packets != 36 || stats.Units != 36 || len(stats.Skipped) != 0 ||
			stats.Bytes != int64(len(file)-24-36*16) {
			t.Errorf("stats of %s: %+v", p, stats)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (Options{}).OpenFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := (Options{}).OpenFile(t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
}

// When a slow pipe is read, each packet is returned without waiting for the next one.
func TestReaderOfPipe(t *testing.T) {
	c := capturetest.New(capturetest.Raw)
	for range 3 {
		c.AddUDP(noon, addrA, addrB, []byte("12345678"))
	}
	for _, file := range [][]byte{c.Pcap(capturetest.Format{}), c.Pcapng(capturetest.Format{})} {
		r, w := io.Pipe()
		var size int
		sizes := make(chan int)
		go func() {
			for _, b := range file {
				w.Write([]byte{b})
				size++
			}
			w.Close()
			sizes <- size
		}()
		s, err := Options{}.NewReader(r, "pipe")
		if err != nil {
			t.Fatal(err)
		}
		units, _, err := drainSource(s)
		if len(units) != 3 || err != io.EOF {
			t.Errorf("%d units, %v", len(units), err)
		}
		if n := <-sizes; n != len(file) {
			t.Errorf("%d bytes of %d were read", n, len(file))
		}
	}
}

func TestFormatErrors(t *testing.T) {
	good := capturetest.New(capturetest.Raw).Pcap(capturetest.Format{})
	edit := func(at int, b ...byte) []byte {
		f := bytes.Clone(good)
		copy(f[at:], b)
		return f
	}
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "not a pcap or pcapng file: it is empty"},
		{[]byte("x"), `not a pcap or pcapng file: it starts with "x"`},
		{[]byte("ping 10.12.0.1 and more"), `not a pcap or pcapng file: it starts with "ping 10.12.0.1 a"`},
		{[]byte("snoop\x00\x00\x00\x00\x00\x00\x02"), "it is a snoop file"},
		{[]byte("\x28\xb5\x2f\xfd\x08 aaaa"), "corrupt zstd file"},
		{[]byte("\xfd7zXZ\x00 aaaaaaaaaa"), "corrupt xz file"},
		{[]byte("\x04\x22\x4d\x18 aaaaaaaaaa"), "corrupt lz4 file"},
		{capturetest.Gzip([]byte("hello")), `not a pcap or pcapng file: it starts with "hello"`},
		{[]byte("\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "corrupt gzip file"},
		{edit(4, 3), "pcap file of version 3.4, not 2"},
		{edit(20, 105), "recording of link type 105"},
	} {
		_, err := Options{}.NewReader(bytes.NewReader(c.file), "it.pcap")
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "it.pcap: ") {
			t.Errorf("%.20q: %v, want %q", c.file, err, c.want)
		}
	}
}

// brokenReader fails after some bytes.
type brokenReader struct {
	r   io.Reader
	err error
}

func (b *brokenReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestReadError(t *testing.T) {
	c := capturetest.New(capturetest.Raw).AddUDP(noon, addrA, addrB, make([]byte, 32))
	for _, file := range [][]byte{c.Pcap(capturetest.Format{}), c.Pcapng(capturetest.Format{})} {
		for _, n := range []int{1, 3, 20, len(file) - 1, len(file)} {
			broken := errors.New("disk on fire")
			s, err := Options{}.NewReader(&brokenReader{bytes.NewReader(file[:n]), broken}, "x")
			if err == nil {
				_, _, err = drainSource(s)
			}
			if !errors.Is(err, broken) {
				t.Errorf("%d of %d bytes: %v", n, len(file), err)
			}
		}
	}
	stuck := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, err := (Options{}).NewReader(stuck, "stuck"); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader without progress: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A truncated file is read up to its last complete packet, wherever the file is truncated.
func TestTruncatedAtEveryByte(t *testing.T) {
	c := capturetest.New(capturetest.Ethernet)
	for i := range 4 {
		c.AddUDP(noon.Add(time.Duration(i)*time.Millisecond), addrA, addrB, make([]byte, 32+i))
	}
	for name, file := range map[string][]byte{
		"pcap": c.Pcap(capturetest.Format{}), "pcapng": c.Pcapng(capturetest.Format{}),
		"gzip": capturetest.Gzip(c.Pcap(capturetest.Format{})),
	} {
		whole := mustRead(t, file)
		if len(whole) != 4 {
			t.Fatalf("%s: %d units", name, len(whole))
		}
		complete, boundary := 0, 0 // boundary is the end of the last complete block
		for n := range file {
			units, stats, err := readAll(t, Options{}, file[:n])
			var cut *TruncatedError
			var format *FormatError
			switch {
			case errors.As(err, &cut):
				if !errors.Is(err, io.ErrUnexpectedEOF) || cut.Packet != int64(len(units)) ||
					stats.Packets != cut.Packet {
					t.Fatalf("%s, %d bytes: %d units, %d packets, %+v", name, n, len(units), stats.Packets, cut)
				}
				if name == "gzip" != (cut.Offset == -1) || name != "gzip" && cut.Offset != int64(boundary) {
					t.Fatalf("%s, %d bytes: offset %d", name, n, cut.Offset)
				}
			case err == io.EOF:
				complete, boundary = complete+1, n // between two records
			case errors.As(err, &format) && n < 4:
			default:
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			same(t, units, whole[:len(units)])
		}
		if want := map[string]int{"pcap": 4, "pcapng": 5, "gzip": 0}[name]; complete != want {
			t.Errorf("%s: %d cuts resemble whole files, want %d", name, complete, want)
		}
	}
	_, _, err := readAll(t, Options{}, c.Pcap(capturetest.Format{})[:24+16+74+20])
	if want := "test: recording is cut off at byte 114, after 1 packet"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

// After the end, Next returns the same error again.
func TestEndIsFinal(t *testing.T) {
	file := capturetest.New(capturetest.Raw).AddUDP(noon, addrA, addrB, nil).Pcap(capturetest.Format{})
	for _, n := range []int{len(file), len(file) - 1} {
		s, err := Options{}.NewReader(bytes.NewReader(file[:n]), "x")
		if err != nil {
			t.Fatal(err)
		}
		_, _, first := drainSource(s)
		_, _, second := drainSource(s)
		if first == nil || first != second {
			t.Errorf("first %v, then %v", first, second)
		}
	}
}

func TestNoAllocationsPerDatagram(t *testing.T) {
	ordinary, tunnel := capturetest.New(capturetest.Ethernet), capturetest.New(capturetest.Ethernet)
	v6, stream := capturetest.New(capturetest.Ethernet), capturetest.New(capturetest.Ethernet)
	fragments := capturetest.New(capturetest.Ethernet)
	for i := range 6000 {
		at := noon.Add(time.Duration(i) * time.Microsecond)
		ordinary.AddUDP(at, addrA, addrB, make([]byte, 200))
		v6.AddUDP(at, addrA6, addrB6, make([]byte, 200))
		tunnel.AddIP(at, inVXLAN(capturetest.UDP(addrA, addrB, make([]byte, 200)), vtepB))
		stream.AddTCP(at, addrA, addrB, capturetest.Segment{Seq: uint32(200 * i), Payload: make([]byte, 200)})
		fragments.AddIP(at, capturetest.Fragments(capturetest.UDP(addrA, addrB, make([]byte, 192)), uint32(i), 104)...)
	}
	for name, file := range map[string][]byte{
		"pcap": ordinary.Pcap(capturetest.Format{}), "pcapng": ordinary.Pcapng(capturetest.Format{}),
		"ipv6": v6.Pcap(capturetest.Format{BigEndian: true}), "vxlan": tunnel.Pcap(capturetest.Format{}),
		"tcp": stream.Pcap(capturetest.Format{}), "fragments": fragments.Pcap(capturetest.Format{}),
	} {
		s, err := Options{}.NewReader(bytes.NewReader(file), name)
		if err != nil {
			t.Fatal(err)
		}
		var u pcapng.Unit
		if n := testing.AllocsPerRun(5000, func() {
			if err := s.Next(&u); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per unit", name, n)
		}
	}
}
