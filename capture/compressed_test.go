package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

// squeeze compresses a file with the compressor that open returns.
func squeeze(t testing.TB, file []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := open(&out)
	if err == nil {
		_, err = w.Write(file)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// writers has a compressor for each format, keyed by the format's name in errors.
var writers = map[string]func(io.Writer) (io.WriteCloser, error){
	"gzip": func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
	"zstd": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	"lz4":  func(w io.Writer) (io.WriteCloser, error) { return lz4.NewWriter(w), nil },
	"xz":   blocksOfXZ,
}

// squeezed returns a file in every supported format.
func squeezed(t testing.TB, file []byte) map[string][]byte {
	all := map[string][]byte{}
	for name, open := range writers {
		all[name] = squeeze(t, file, open)
	}
	return all
}

// blocksOfXZ returns a writer of xz files with several blocks.
func blocksOfXZ(w io.Writer) (io.WriteCloser, error) {
	return xz.WriterConfig{BlockSize: 1001, DictCap: 1 << 16}.NewWriter(w)
}

// TestCompressed: a recording has the same contents in every format, even if several compressed files are concatenated.
// A truncated file is read up to the last byte that can be decompressed.
func TestCompressed(t *testing.T) {
	c := capturetest.New(capturetest.Ethernet)
	for i := range 200 {
		c.AddUDP(noon.Add(time.Duration(i)*time.Millisecond), addrA, addrB, pattern(30+i))
	}
	file := c.Pcap(capturetest.Format{})
	want := mustRead(t, file)
	half := squeezed(t, file[:len(file)/2])
	rest := squeezed(t, file[len(file)/2:])
	for name, z := range squeezed(t, file) {
		same(t, mustRead(t, z), want)
		same(t, mustRead(t, slices.Concat(half[name], rest[name])), want)
		for n := 6; n < len(z); n += 1 + len(z)/50 {
			units, _, err := readAll(t, Options{}, z[:n])
			var cut *TruncatedError
			if !errors.As(err, &cut) || cut.Offset != unknownOffset || cut.Packet != int64(len(units)) {
				t.Fatalf("%s, %d of %d bytes: %d units, %v", name, n, len(z), len(units), err)
			}
			same(t, units, want[:len(units)])
		}
	}
}

// TestCorruptCompressed: a corrupt file is read up to the corruption, or up to the checksum that detects it.
func TestCorruptCompressed(t *testing.T) {
	c := capturetest.New(capturetest.Ethernet)
	for i := range 200 {
		c.AddUDP(noon.Add(time.Duration(i)*time.Millisecond), addrA, addrB, pattern(30+i))
	}
	for name, z := range squeezed(t, c.Pcap(capturetest.Format{})) {
		for _, at := range []int{len(z) / 2, len(z) - 5} {
			z := bytes.Clone(z)
			z[at] ^= 0xff
			_, stats, err := readAll(t, Options{}, z)
			var format *FormatError
			var cut *TruncatedError
			if !errors.As(err, &format) && !errors.As(err, &cut) {
				t.Errorf("%s, byte %d of %d: %d packets, %v", name, at, len(z), stats.Packets, err)
			}
		}
	}
}

// TestWindowTooLong: a file that requests a larger window than allowed is rejected before memory is allocated for the
// window. This also applies to later blocks, and to many blocks that exceed the limit together.
func TestWindowTooLong(t *testing.T) {
	head, records := capturetest.New(capturetest.Raw).Pcap(capturetest.Format{}), make([]byte, 16*200) // empty records
	// withWindow returns an xz file whose first block claims a dictionary of the given size.
	withWindow := func(bits byte) []byte {
		z := squeeze(t, records, blocksOfXZ)
		const header = 12
		block := z[header : header+(int(z[header])+1)*4]
		at := bytes.IndexByte(block, 0x21)
		block[at+2] = bits
		binary.LittleEndian.PutUint32(block[len(block)-4:], crc32.ChecksumIEEE(block[:len(block)-4]))
		return z
	}
	const allowed, tooLong = 0x1e, 0x20 // 128 and 256 MiB
	zstdWindow := []byte("\x28\xb5\x2f\xfd\x00\x90")
	for name, z := range map[string][]byte{
		"xz":        withWindow(tooLong),
		"xz second": slices.Concat(squeeze(t, head, blocksOfXZ), withWindow(tooLong)),
		"xz often":  slices.Concat(squeeze(t, head, blocksOfXZ), bytes.Repeat(withWindow(allowed), 100)),
		"zstd":      append(zstdWindow, make([]byte, 100)...),
	} {
		before := allocated()
		_, _, err := readAll(t, Options{}, z)
		var corrupt *FormatError
		format, _, _ := strings.Cut(name, " ")
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "corrupt "+format) ||
			format == "xz" && !strings.Contains(err.Error(), "or too many of them") {
			t.Errorf("%s: %v", name, err)
		}
		if n := allocated() - before; name != "xz often" && n > 4<<20 || n > 8*maxWindow {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

// TestBomb: a file that is much longer when decompressed is read as a stream.
func TestBomb(t *testing.T) {
	const zeros = 32 << 20
	file := append(capturetest.New(capturetest.Raw).Pcap(capturetest.Format{}), make([]byte, zeros)...)
	for name, open := range writers {
		if name == "xz" {
			open = func(w io.Writer) (io.WriteCloser, error) { return xz.WriterConfig{DictCap: 1 << 16}.NewWriter(w) }
		}
		z := squeeze(t, file, open)
		before := allocated()
		if _, stats, err := readAll(t, Options{}, z); err != io.EOF || stats.Packets != zeros/16 {
			t.Errorf("%s: %d packets, %v", name, stats.Packets, err)
		}
		if n := allocated() - before; n > zeros/2 {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, n, len(z))
		}
	}
}
