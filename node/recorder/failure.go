package recorder

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Suffix is the suffix of the file names of records in a spool.
const Suffix = ".pcapng.gz"

// WorthRecording reports whether the packets before a failure may show its cause. It is true for a timeout, including
// the caller's, and for a fragmented message that was not acknowledged. It returns false for an operation that failed
// because an earlier one did.
func WorthRecording(err error) bool {
	if errors.Is(err, handshake.ErrDeadEnd) {
		return false
	}
	return errors.Is(err, handshake.ErrPartial) || errors.Is(err, handshake.ErrTimeout) ||
		errors.Is(err, extended.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// RecordName returns the name for a record of a failed operation between a rank and a peer. peer is negative if the
// failure concerns no peer. Names sort by time. The parameter of distinguishes the record from other records in the
// same spool; it may be empty.
func RecordName(now time.Time, of string, rank, peer int) string {
	name := now.UTC().Format("20060102T150405.000Z")
	if of != "" {
		name += "-" + of
	}
	name += fmt.Sprintf("-rank%d", rank)
	if peer >= 0 {
		name += fmt.Sprintf("-peer%d", peer)
	}
	return name
}

var namePattern = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z(-.+)?-rank\d+(-peer\d+)?$`)

// IsName reports whether a name has the format of RecordName.
func IsName(name string) bool { return namePattern.MatchString(name) }

// Encode returns a record as a compressed file whose length is at most most bytes. If necessary, it omits the oldest
// entries.
func Encode(recording Recording, most int64, now time.Time, comment string) ([]byte, error) {
	for {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err == nil {
			err = Write(z, recording, now, comment)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil || int64(b.Len()) <= most || len(recording.Units)+len(recording.Calls) < 2 {
			return b.Bytes(), err
		}
		recording.Units, recording.Calls = recording.Units[len(recording.Units)/2:], recording.Calls[len(recording.Calls)/2:]
	}
}

// recordBurst records may be written in a burst, and then one per recordInterval, so that repeated failures neither
// displace the first records from the spool quickly nor use much processor time.
const (
	recordBurst    = 4
	recordInterval = time.Minute
)

// RateLimiter limits the rate of records.
type RateLimiter struct {
	// burstFullAt is the time from which a full burst may be written again.
	burstFullAt time.Time
}

// Allow reports whether a record may be written now, and counts it.
func (p *RateLimiter) Allow(now time.Time) bool {
	if p.burstFullAt.Before(now) {
		p.burstFullAt = now
	}
	if p.burstFullAt.Sub(now) > (recordBurst-1)*recordInterval {
		return false
	}
	p.burstFullAt = p.burstFullAt.Add(recordInterval)
	return true
}
