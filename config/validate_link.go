package config

import (
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Limits of the length of datagrams in bytes. The minimum is a header and one line of the FPGA; the maximum is that of
// UDP over IPv4.
const (
	minDatagram = protocol.HeaderLen + protocol.LineLen
	maxDatagram = 65507
)

// maxPause is a thousand times the pause that an FPGA's DRAM needs.
const maxPause = 10 * time.Millisecond

// validate checks each value that is set.
func (o *LinkOptions) validate(problems *strictyaml.Problems, key string) {
	if o.Profile != nil {
		if _, err := protocol.ParseProfile(protocol.Profile(*o.Profile).String()); err != nil {
			problems.Add(key+".profile", "%v", err)
		}
	}
	if o.Transport != nil {
		checkOneOf(problems, key+".transport", *o.Transport, TransportUDP, TransportTCP, TransportSHM)
	}
	if o.Path != nil {
		checkOneOf(problems, key+".path", *o.Path, PathKernel, PathXDP, PathAuto)
	}
	if o.OnPartial != nil {
		checkOneOf(problems, key+".on_partial", *o.OnPartial, PartialError, PartialRetransmit)
	}
	if o.MaxMessageWords != nil {
		checkRange(problems, key+".max_message_words", *o.MaxMessageWords, 0, MaxWords)
	}
	if o.MaxDatagram != nil {
		n := *o.MaxDatagram
		checkRange(problems, key+".max_datagram", n, minDatagram, maxDatagram)
		if n%protocol.LineLen != 0 {
			problems.Add(key+".max_datagram", "%d is not a multiple of %d, and an FPGA would shift the data: use %d",
				n, protocol.LineLen, n-n%protocol.LineLen)
		}
	}
	if n := o.EagerLimit; n != nil {
		checkRange(problems, key+".eager_limit", *n, 0, maxEagerLimit)
	}
	if n := o.EagerCredit; n != nil {
		checkRange(problems, key+".eager_credit", *n, 1, maxEagerCredit)
	}
	if d := o.Pace.PerDatagram; d != nil && (*d < 0 || *d > maxPause) {
		problems.Add(key+".pace.per_datagram", "%v is outside 0s to %v", *d, maxPause)
	}
	if o.Pace.OverWords != nil {
		checkRange(problems, key+".pace.over_words", *o.Pace.OverWords, 0, MaxWords)
	}
	checkOptional(problems, key+".deadlines.clear", o.Deadlines.Clear)
	checkOptional(problems, key+".deadlines.ack", o.Deadlines.Ack)
	checkOptional(problems, key+".deadlines.data", o.Deadlines.Data)
	checkOptional(problems, key+".warn_after", o.WarnAfter)
}

func checkOptional(p *strictyaml.Problems, key string, got *time.Duration) {
	if got != nil {
		checkDuration(p, key, *got)
	}
}
