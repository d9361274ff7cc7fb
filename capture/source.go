package capture

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Options say what a Source gives. The zero Options are good for every cluster
// that uses ZRLMPI's ports.
type Options struct {
	// Ports are the UDP and TCP ports that carry ZRLMPI: a packet is read if
	// it goes to or comes from one. None means 2718 to 2845, one for each of
	// the 128 ranks that may share an address.
	Ports []uint16
	// AllPorts reads every UDP datagram and TCP stream.
	AllPorts bool
	// OnNote, if not nil, is given what a file of this package has of ranks beside packets, in the order of the file, while Next reads on.
	OnNote func(RankNote)
}

// OpenFile opens a pcap or pcapng file, or one of them compressed with gzip; "-"
// is standard input. Its error is a *FormatError if the file is something else.
func (o Options) OpenFile(path string) (Source, error) {
	if path == "-" {
		return o.NewReader(os.Stdin, "standard input")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	s, err := o.newFileSource(f, path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// NewReader reads what OpenFile reads from r, which need not be seekable; name
// is for errors. Close does not close r.
func (o Options) NewReader(r io.Reader, name string) (Source, error) {
	return o.newFileSource(r, name, nil)
}

func (o Options) newFileSource(r io.Reader, name string, c io.Closer) (Source, error) {
	s := &source{decoder: newDecoder(o), name: name, closer: c}
	var err error
	if r, err = s.decompress(r); err == nil {
		s.records, err = newRecordReader(r)
	}
	if ng, ok := s.records.(*ngReader); ok {
		s.about, ng.onNote = &ng.about, o.OnNote
		s.anyPort = len(o.Ports) == 0
	}
	if err != nil {
		return nil, s.explain(err)
	}
	return s, nil
}

// record is one recorded packet.
type record struct {
	time time.Time
	link linkType
	// data is what was recorded of the packet, valid until the next record.
	data []byte
	// wire is the length in bytes that the packet had on the wire.
	wire int
	// comments are the file's.
	comments []string
}

// recordReader gives the packets of a file or an interface. Its error is io.EOF
// at the end, and a *recordError where a file is cut off or is invalid.
type recordReader interface {
	next(*record) error
}

// recordError is what a recordReader knows of a TruncatedError, if err is
// io.ErrUnexpectedEOF, and of a FormatError otherwise.
type recordError struct {
	offset int64
	reason string
	err    error
}

func (e *recordError) Error() string { return e.reason }
func (e *recordError) Unwrap() error { return e.err }

// source makes units of records.
type source struct {
	name       string
	records    recordReader
	closer     io.Closer
	compressed bool
	rec        record
	decoder    *decoder
	stats      Stats
	// drops asks a live interface how many packets it has lost.
	drops func() int64
	// about is what a file says of itself, or nil. anyPort: the packets of a file of our own, which has no others, are read
	// whatever their ports are.
	about   *aboutFile
	anyPort bool
	// err is why the records ended.
	err error
}

// Next implements Source.
func (s *source) Next(u *Unit) error {
	for {
		if s.decoder.tcp.pop(u) {
			s.stats.Units++
			return nil
		}
		if s.err != nil {
			return s.err
		}
		if err := s.records.next(&s.rec); err != nil {
			s.err = s.explain(err)
			s.decoder.finish()
			continue
		}
		s.stats.Packets++
		s.stats.Bytes += int64(len(s.rec.data))
		if s.anyPort && s.about.own {
			s.decoder.allPorts = true
		}
		if s.decoder.decode(&s.rec, s.stats.Packets, u) == gotUnit {
			u.Comments = s.rec.comments
			s.stats.Units++
			return nil
		}
	}
}

// explain turns the error of a recordReader into the one that Next returns.
func (s *source) explain(err error) error {
	offset := int64(unknownOffset)
	at, _ := errors.AsType[*recordError](err)
	if at != nil && !s.compressed {
		offset = at.offset
	}
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{Name: s.name, Packet: s.stats.Packets, Offset: offset, Err: io.ErrUnexpectedEOF}
	case s.compressed && isGzipError(err):
		return &FormatError{
			Name: s.name, Packet: s.stats.Packets, Offset: unknownOffset,
			Reason: "corrupt gzip file", Err: errors.Unwrap(err),
		}
	case at != nil && at.err == nil:
		return &FormatError{Name: s.name, Packet: s.stats.Packets, Offset: offset, Reason: at.reason}
	case at != nil:
		err = at.err
	}
	return fmt.Errorf("%s: read recording, after %s: %w", s.name, counted(s.stats.Packets, "packet"), err)
}

func isGzipError(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt)
}

// decompress examines the first bytes of r, and unpacks gzip.
func (s *source) decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &recordError{err: err}
	}
	if len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil
	}
	s.compressed = true
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, &recordError{err: err}
	}
	return z, nil
}

// Stats implements Source.
func (s *source) Stats() Stats {
	stats := s.stats
	stats.Skipped = s.decoder.skipped.named()
	lost := int64(0)
	if s.drops != nil {
		lost = s.drops()
	}
	if s.about != nil {
		stats.Comment, stats.End = s.about.comment, s.about.end
		lost = s.about.dropped
	}
	if lost > 0 {
		stats.Skipped[SkipKernelDrops] = lost
	}
	return stats
}

// Close implements Source.
func (s *source) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}
