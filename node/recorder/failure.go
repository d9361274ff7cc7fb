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

// Suffix ends the names of records in a spool.
const Suffix = ".pcapng.gz"

// Worth reports whether the packets before a failure may show its cause: a time-out, its caller's too, and a fragmented message that
// was not acknowledged. Operations that end because of an earlier one are not.
func Worth(err error) bool {
	if errors.Is(err, handshake.ErrDeadEnd) {
		return false
	}
	return errors.Is(err, handshake.ErrPartial) || errors.Is(err, handshake.ErrTimeout) ||
		errors.Is(err, extended.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// Name returns the name of the record of a failure of a rank with a peer, which is negative for none in particular. Names sort by time. of
// distinguishes it from records of others in the same spool; it may be empty.
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

// IsName reports whether a name is one that Name returns.
func IsName(name string) bool { return recordName.MatchString(name) }

// Encode returns a record as a compressed file of at most so many bytes: if it does not fit, it begins later.
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

// A few records may be written one after the other, and then one in each paceEvery: failures that go on do not displace the first of them
// from the spool soon, or take much of a processor.
const (
	paceBurst = 4
	paceEvery = time.Minute
)

// Pace says when a record may be written.
type Pace struct {
	// full is when as many as paceBurst may be.
	full time.Time
}

// Take reports whether one may be written now, which it is then.
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
