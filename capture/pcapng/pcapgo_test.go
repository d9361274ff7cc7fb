package pcapng

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// The tests in this file show why pcapgo 1.1.19 is not used to read pcapng. Each test demonstrates a bug in pcapgo that
// Reader does not have. If a test fails with a newer version of pcapgo, the bug is fixed in that version.

// recording returns a file that contains one packet with a comment. iface and packet are the offsets of the interface's
// and the packet's blocks.
func recording(t *testing.T) (file []byte, iface, packet int) {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, WriterOptions{})
	err := w.WriteUnit(&Unit{
		Time: time.Unix(1, 0), Src: netip.MustParseAddrPort("127.0.0.1:1"), Dst: netip.MustParseAddrPort("127.0.0.2:2"),
		Proto: UDP, Data: make([]byte, 32), Comments: []string{"a comment"},
	})
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	file = b.Bytes()
	iface = int(binary.LittleEndian.Uint32(file[4:]))
	return file, iface, iface + int(binary.LittleEndian.Uint32(file[iface+4:]))
}

// read returns the first packet of a file and the error that follows it. If there is no packet, it returns only the
// error.
func read(t *testing.T, file []byte) (Record, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), nil)
	if err != nil {
		return Record{}, err
	}
	var first, rest Record
	if err := r.Next(&first); err != nil {
		return Record{}, err
	}
	return first, r.Next(&rest)
}

// pcapgoRead uses pcapgo to read the link type and the first packet of a pcapng file.
func pcapgoRead(file []byte) (link layers.LinkType, data []byte, info gopacket.CaptureInfo, err error) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		return 0, nil, info, err
	}
	data, info, err = r.ReadPacketData()
	return r.LinkType(), data, info, err
}

// TestPcapgoPanics: pcapgo divides by 0 for a clock of 2⁻⁶⁴ seconds.
func TestPcapgoPanics(t *testing.T) {
	file, _, _ := recording(t)
	resolution := bytes.Index(file, []byte{optResolution, 0, 1, 0, 9})
	file[resolution+4] = 0xc0
	if _, err := read(t, file); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Reader: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("pcapgo does not panic")
		}
	}()
	_, _, _, _ = pcapgoRead(file)
}

// TestPcapgoEndsSilently: pcapgo reports a truncated file as complete, wherever the file is truncated.
func TestPcapgoEndsSilently(t *testing.T) {
	file, _, packet := recording(t)
	for end := packet + 1; end < len(file); end++ {
		if _, err := read(t, file[:end]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("Reader, of %d bytes of %d: %v", end, len(file), err)
		}
		if _, _, _, err := pcapgoRead(file[:end]); err != io.EOF {
			t.Fatalf("pcapgo, of %d bytes of %d: %v", end, len(file), err)
		}
	}
}

// TestPcapgoLinkTypes: pcapgo stores a link type in 8 bits, but LINUX_SLL2 has 9.
func TestPcapgoLinkTypes(t *testing.T) {
	file, iface, _ := recording(t)
	binary.LittleEndian.PutUint16(file[iface+8:], uint16(LinkSLL2))
	if rec, err := read(t, file); rec.Link != LinkSLL2 || err != io.EOF {
		t.Errorf("Reader: link type %d, %v", rec.Link, err)
	}
	if link, _, _, err := pcapgoRead(file); err != nil || int(link) == int(LinkSLL2) {
		t.Errorf("pcapgo: link type %d, %v", link, err)
	}
}

// TestPcapgoBelievesLengths: pcapgo allocates the length claimed by a block, up to 4 GiB; this one claims 64 MiB.
func TestPcapgoBelievesLengths(t *testing.T) {
	const claimed = 64 << 20
	file, _, packet := recording(t)
	for _, at := range []int{4, 20, 24} { // lengths of the block, of the recorded part and of the packet
		binary.LittleEndian.PutUint32(file[packet+at:], claimed)
	}
	if n := allocated(func() { _, _ = read(t, file) }); n > 1<<20 {
		t.Errorf("Reader allocates %d bytes", n)
	}
	if n := allocated(func() { _, _, _, _ = pcapgoRead(file) }); n < claimed {
		t.Errorf("pcapgo allocates %d bytes", n)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestPcapgoLosesComments: pcapgo does not return the comments on packets.
func TestPcapgoLosesComments(t *testing.T) {
	file, _, _ := recording(t)
	if rec, err := read(t, file); !slices.Equal(rec.Comments, []string{"a comment"}) || err != io.EOF {
		t.Errorf("Reader: %q, %v", rec.Comments, err)
	}
	if _, _, info, err := pcapgoRead(file); err != nil || len(info.AncillaryData) > 0 {
		t.Errorf("pcapgo: %v, %v", info.AncillaryData, err)
	}
}
