package capture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
)

// maxWindow is the maximum window, in bytes, that a compressed file may request. It suffices for zstd -22 and --long,
// and is twice the window of xz -9. Decompression uses at most a few times this amount of memory, whatever the file
// claims.
const maxWindow = 128 << 20

// compression is a compression format of recordings.
type compression struct {
	name  string
	magic string
	open  func(*bufio.Reader) (io.Reader, error)
}

// compressions lists the supported formats. decompress recognizes a format by the first bytes of a file, not by the
// file's name.
var compressions = []compression{
	{"gzip", "\x1f\x8b", func(b *bufio.Reader) (io.Reader, error) { return gzip.NewReader(b) }},
	{"zstd", "\x28\xb5\x2f\xfd", func(b *bufio.Reader) (io.Reader, error) {
		return zstd.NewReader(b,
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
	}},
	{"xz", xzMagic, func(b *bufio.Reader) (io.Reader, error) { return xz.NewReader(&xzGuard{b: b}) }},
	{"lz4", "\x04\x22\x4d\x18", func(b *bufio.Reader) (io.Reader, error) {
		z := lz4.NewReader(b)
		return z, z.Apply(lz4.ConcurrencyOption(1))
	}},
}

// compressedReader reads a compressed file. Read returns io.EOF at the end, io.ErrUnexpectedEOF if the file is
// truncated, the underlying reader's error if that reader fails, and a *corruptError otherwise.
type compressedReader struct {
	format string
	in     *inputReader
	out    io.Reader
}

// corruptError is returned if the rest of a file cannot be decompressed.
type corruptError struct {
	format string
	err    error
}

func (e *corruptError) Error() string { return fmt.Sprintf("corrupt %s file: %v", e.format, e.err) }
func (e *corruptError) Unwrap() error { return e.err }

// inputReader remembers the error of the underlying reader, because decompressors may hide this error.
type inputReader struct {
	r   io.Reader
	err error
}

func (i *inputReader) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if err != nil {
		i.err = err
	}
	return n, err
}

// decompress returns a reader of the decompressed contents of r. It detects the compression format from the first bytes
// and returns its name, or "" if r is not compressed.
func decompress(r io.Reader) (out io.Reader, format string, err error) {
	in := &inputReader{r: r}
	b := bufio.NewReaderSize(in, 64<<10)
	start, err := b.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	for _, c := range compressions {
		if !bytes.HasPrefix(start, []byte(c.magic)) {
			continue
		}
		z := &compressedReader{format: c.name, in: in}
		if z.out, err = c.open(b); err != nil {
			return nil, c.name, z.convertError(err)
		}
		return z, c.name, nil
	}
	return b, "", nil
}

func (z *compressedReader) Read(p []byte) (int, error) {
	n, err := z.out.Read(p)
	if err != nil {
		err = z.convertError(err)
	}
	return n, err
}

// convertError converts an error from a decompressor to the error that compressedReader.Read returns.
func (z *compressedReader) convertError(err error) error {
	switch {
	case err == io.EOF: //nolint:errorlint // as a Reader returns it
		return err
	case z.in.err != nil && !errors.Is(z.in.err, io.EOF):
		return z.in.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	}
	return &corruptError{z.format, err}
}

const xzMagic = "\xfd7zXZ\x00"

var (
	errXZWindow  = fmt.Errorf("it needs a dictionary of more than %d MiB, or too many of them", maxWindow>>20)
	errXZFilters = errors.New("it has filters other than LZMA2")
	errXZIndex   = errors.New("its index is invalid")
)

// maxWindowPerByte limits the total size of a file's dictionaries, because every block allocates its own. A file may
// use four times maxWindow, plus maxWindowPerByte for each byte of the file. Blocks of zeros written by xz -T need a
// third of this limit.
const maxWindowPerByte = 8192

// xzGuard passes an xz file to the decompressor up to the first block whose dictionary is too large. The decompressor
// alone would allocate any dictionary that the file requests, up to 4 GiB.
type xzGuard struct {
	b *bufio.Reader
	// readNext parses the next element of the file without consuming it, and returns its length. remaining is the
	// number of bytes of the current element not yet passed to the decompressor.
	readNext  func(*xzGuard) (int, error)
	remaining int
	// checksumLen is the length of the checksum at the end of each block. chunksLen is the total length of the chunks
	// read so far in the current block.
	checksumLen, chunksLen int
	// passedBytes is the number of bytes passed to the decompressor so far. windowBytes is the total size of the
	// dictionaries of all blocks so far.
	passedBytes, windowBytes uint64
	// indexNumbers is the number of integers still to be read from the index. indexLen is the length, modulo 4, of the
	// index read so far.
	indexNumbers uint64
	indexLen     int
}

// Read parses each element of the file before it returns the element's first byte. It fails if a dictionary is too
// large.
func (g *xzGuard) Read(p []byte) (int, error) {
	for g.remaining == 0 {
		next := g.readNext
		if next == nil {
			next = (*xzGuard).readStreamHeader
		}
		n, err := next(g)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if err != nil { // the decompressor reports the truncation
			return g.b.Read(p)
		}
		g.remaining = n
	}
	n, err := g.b.Read(p[:min(len(p), g.remaining)])
	g.remaining -= n
	g.passedBytes += uint64(n)
	return n, err
}

// readStreamHeader reads the header of a stream, or padding before it.
func (g *xzGuard) readStreamHeader() (int, error) {
	g.readNext = (*xzGuard).readStreamHeader
	h, err := g.b.Peek(12)
	if len(h) >= 4 && binary.LittleEndian.Uint32(h) == 0 {
		return 4, nil
	}
	if err != nil {
		return 0, err
	}
	// Length of the checksum by its type.
	g.checksumLen = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[h[7]&0xf]
	g.readNext = (*xzGuard).readBlockHeader
	return len(h), nil
}

// readBlockHeader reads the header of a block, or the beginning of the index that follows the last block.
func (g *xzGuard) readBlockHeader() (int, error) {
	h, err := g.b.Peek(1)
	if err != nil {
		return 0, err
	}
	if h[0] == 0 {
		g.indexLen, g.indexNumbers, g.readNext = 1, 0, (*xzGuard).readIndexCount
		return 1, nil
	}
	if h, err = g.b.Peek((int(h[0]) + 1) * 4); err != nil {
		return 0, err
	}
	at := 2
	for flag := byte(0x40); flag != 0; flag <<= 1 { // the optional sizes
		if h[1]&flag != 0 {
			_, n := binary.Uvarint(h[at:])
			at += max(n, 0)
		}
	}
	const lzma2 = 0x21
	if h[1]&3 != 0 || at+3 > len(h) || h[at] != lzma2 || h[at+1] != 1 {
		return 0, errXZFilters
	}
	bits := h[at+2]
	window := uint64(2|bits&1) << (bits/2 + 11)
	if g.windowBytes += window; window > maxWindow || g.windowBytes > 4*maxWindow+maxWindowPerByte*g.passedBytes {
		return 0, errXZWindow
	}
	g.chunksLen = 0
	g.readNext = (*xzGuard).readChunkHeader
	return len(h), nil
}

// readChunkHeader reads the header of the next chunk in a block, or the padding and checksum that follow the last
// chunk.
func (g *xzGuard) readChunkHeader() (int, error) {
	h, err := g.b.Peek(1)
	if err != nil {
		return 0, err
	}
	var n int
	switch control := h[0]; {
	case control == 0:
		g.readNext = (*xzGuard).readBlockHeader
		g.chunksLen++
		return 1 + (4-g.chunksLen%4)%4 + g.checksumLen, nil
	case control < 0x80: // not compressed
		if h, err = g.b.Peek(3); err != nil {
			return 0, err
		}
		n = 3 + int(binary.BigEndian.Uint16(h[1:])) + 1
	default:
		if h, err = g.b.Peek(5); err != nil {
			return 0, err
		}
		n = 5 + int(binary.BigEndian.Uint16(h[3:])) + 1
		if control >= 0xc0 { // with properties
			n++
		}
	}
	g.chunksLen = (g.chunksLen + n) % 4
	return n, nil
}

// readIndexCount reads the number of records of the index. Each record consists of two numbers.
func (g *xzGuard) readIndexCount() (int, error) {
	v, n, err := g.readVarint()
	if v > 1<<60 {
		return 0, errXZIndex
	}
	g.indexNumbers, g.readNext = 2*v, (*xzGuard).readIndexNumber
	return n, err
}

// readIndexNumber reads a number of the index. Padding, a checksum and the stream footer follow the last number.
func (g *xzGuard) readIndexNumber() (int, error) {
	if g.indexNumbers == 0 {
		g.readNext = (*xzGuard).readStreamHeader
		return (4-g.indexLen)%4 + 4 + 12, nil
	}
	g.indexNumbers--
	_, n, err := g.readVarint()
	return n, err
}

// readVarint parses an integer of the index, of at most 9 bytes. The format has the encoding of binary.Uvarint.
func (g *xzGuard) readVarint() (v uint64, n int, err error) {
	h, err := g.b.Peek(binary.MaxVarintLen64 - 1)
	if err != nil {
		return 0, 0, err
	}
	if v, n = binary.Uvarint(h); n <= 0 {
		return 0, 0, errXZIndex
	}
	g.indexLen = (g.indexLen + n) % 4
	return v, n, nil
}
