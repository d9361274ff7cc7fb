package capture

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// Options configure a Source. The zero value is right for every cluster that uses ZRLMPI's ports.
type Options struct {
	// Ports lists the UDP and TCP ports that carry ZRLMPI. The source reads a packet if its source or destination port
	// is in the list. The default is 2718 to 2845, one port for each of the 128 ranks that may share an address.
	Ports []uint16
	// AllPorts makes the source read UDP datagrams and TCP streams on all ports.
	AllPorts bool
	// OnNote, if not nil, is called by Next with each note about a rank in a file written by a pcapng.Writer, in the
	// order of the file.
	OnNote func(pcapng.RankNote)
}

// OpenFile opens a pcap or pcapng file, which may be compressed with gzip, zstd, xz or lz4. It recognizes the format by
// the contents, not by the name. "-" is standard input. The error is a *FormatError for any other format.
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

// NewReader reads the same formats as OpenFile from r, which need not be seekable. name appears in errors. Close does
// not close r.
func (o Options) NewReader(r io.Reader, name string) (Source, error) {
	return o.newFileSource(r, name, nil)
}

func (o Options) newFileSource(r io.Reader, name string, c io.Closer) (Source, error) {
	s := &source{decoder: newDecoder(o), name: name, closer: c}
	var err error
	if r, s.format, err = decompress(r); err == nil {
		var file pcapng.Reader
		if file, err = pcapng.NewReader(r, o.OnNote); err == nil {
			s.records, s.metadata, s.trustFilePorts = file, file.Metadata(), len(o.Ports) == 0
		}
	}
	if err != nil {
		return nil, s.convertError(err)
	}
	return s, nil
}

// recordReader yields the recorded packets of a file, or the packets of an interface. Next returns io.EOF at the end.
type recordReader interface {
	Next(*pcapng.Record) error
}

// source converts records to units.
type source struct {
	name    string
	records recordReader
	closer  io.Closer
	format  string // of the compression, or ""
	rec     pcapng.Record
	decoder *decoder
	stats   Stats
	// kernelDrops is a function that returns the number of packets dropped by the kernel during a live capture. It is
	// nil for a file.
	kernelDrops func() int64
	// metadata is the metadata of a file, or nil. trustFilePorts makes the source read packets on any port of a file
	// written by a pcapng.Writer, because such files contain only ZRLMPI packets.
	metadata       *pcapng.Metadata
	trustFilePorts bool
	// err is the error from the recordReader. Next returns it after the last unit.
	err error
}

// Next implements Source.
func (s *source) Next(unit *pcapng.Unit) error {
	for {
		if s.decoder.tcp.pop(unit) {
			s.stats.Units++
			return nil
		}
		if s.err != nil {
			return s.err
		}
		if s.readPacket(unit) == gotUnit {
			s.stats.Units++
			return nil
		}
	}
}

// readPacket reads the next packet. If the packet completes a unit, readPacket stores the unit in unit and returns
// gotUnit. At the end of the records, it sets s.err.
func (s *source) readPacket(unit *pcapng.Unit) decodeResult {
	if err := s.records.Next(&s.rec); err != nil {
		s.err = s.convertError(err)
		s.decoder.dropIncomplete()
		return unitPending
	}
	s.stats.Packets++
	s.stats.Bytes += int64(len(s.rec.Data))
	if s.trustFilePorts && s.metadata.FromWriter {
		s.decoder.allPorts = true
	}
	v := s.decoder.decode(&s.rec, s.stats.Packets, unit)
	if v == gotUnit {
		unit.Comments = s.rec.Comments
	}
	return v
}

// convertError converts an error from the recordReader to the error that Next returns.
func (s *source) convertError(err error) error {
	offset := int64(unknownOffset)
	at, _ := errors.AsType[*pcapng.Error](err)
	if at != nil && s.format == "" {
		offset = at.Offset
	}
	corrupt, _ := errors.AsType[*corruptError](err)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &TruncatedError{Name: s.name, Packet: s.stats.Packets, Offset: offset, Err: io.ErrUnexpectedEOF}
	case corrupt != nil:
		return &FormatError{
			Name: s.name, Packet: s.stats.Packets, Offset: unknownOffset,
			Reason: "corrupt " + corrupt.format + " file", Err: corrupt.err,
		}
	case at != nil && at.Err == nil:
		return &FormatError{Name: s.name, Packet: s.stats.Packets, Offset: offset, Reason: at.Reason}
	case at != nil:
		err = at.Err
	}
	return fmt.Errorf("%s: read recording, after %s: %w", s.name, formatCount(s.stats.Packets, "packet"), err)
}

// Stats implements Source.
func (s *source) Stats() Stats {
	stats := s.stats
	stats.Skipped = s.decoder.skipped.named()
	lost := int64(0)
	if s.kernelDrops != nil {
		lost = s.kernelDrops()
	}
	if s.metadata != nil {
		stats.Comment, stats.End = s.metadata.Comment, s.metadata.End
		lost = s.metadata.Dropped
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
