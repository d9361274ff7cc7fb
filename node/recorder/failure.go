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

// Suffix is the suffix of the names of records in a spool.
const Suffix = ".pcapng.gz"

// Worth reports whether the packets before a failure may show its cause. It is true for a timeout, including the
// caller's, and for a fragmented message that was not acknowledged. It is false for an operation that failed because an
// earlier one did.
func Worth(err error) bool {
	if errors.Is(err, handshake.ErrDeadEnd) {
		return false
	}
	return errors.Is(err, handshake.ErrPartial) || errors.Is(err, handshake.ErrTimeout) ||
		errors.Is(err, extended.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// Name returns the name of the record of a failure of a rank with a peer; peer is negative for a failure that concerns
// no peer. Names sort by time. of distinguishes the record from other records in the same spool, and may be empty.
func Name(now time.Time, of string, rank, peer int) string {
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

var recordName = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z(-.+)?-rank\d+(-peer\d+)?$`)

// IsName reports whether a name has the format of Name.
func IsName(name string) bool { return recordName.MatchString(name) }

// Encode returns a record as a compressed file of at most most bytes. It omits the oldest entries if they do not fit.
func Encode(r Recorded, most int64, now time.Time, comment string) ([]byte, error) {
	for {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err == nil {
			err = Write(z, r, now, comment)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil || int64(b.Len()) <= most || len(r.Units)+len(r.Calls) < 2 {
			return b.Bytes(), err
		}
		r.Units, r.Calls = r.Units[len(r.Units)/2:], r.Calls[len(r.Calls)/2:]
	}
}

// paceBurst records may be written in a burst, and then one per paceEvery. So repeated failures neither quickly
// displace the first records from the spool nor use much processor time.
const (
	paceBurst = 4
	paceEvery = time.Minute
)

// Pace limits the rate of records.
type Pace struct {
	// full is the time at which a full burst is available again.
	full time.Time
}

// Take reports whether a record may be written now, and counts it.
func (p *Pace) Take(now time.Time) bool {
	if p.full.Before(now) {
		p.full = now
	}
	if p.full.Sub(now) > (paceBurst-1)*paceEvery {
		return false
	}
	p.full = p.full.Add(paceEvery)
	return true
}
