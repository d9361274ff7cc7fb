package config

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Link is how a local rank talks to one peer, every value set. The daemon
// supplies the built-in Link of each kind of peer; LinkFor lays the
// configuration over it.
type Link struct {
	// Profile is the dialect of the header.
	Profile   protocol.Profile
	Transport Transport
	// OnPartial says what to do when a message of several datagrams is not
	// ACKed in time. Repeating one may corrupt it in a deployed FPGA.
	OnPartial OnPartial
	// MaxMessageWords cuts larger sends into messages of so many words; the
	// peer's program must receive them so. 0: never cut.
	MaxMessageWords int
	// MaxDatagram is the largest datagram in bytes, header included.
	MaxDatagram int
	// EagerLimit is the longest message, in bytes, that is sent to a peer of the
	// extended profile before a receive matches; 0: none is.
	EagerLimit Size
	// Credit is what we let such a peer send before a receive matches.
	Credit    Credit
	Pace      Pace
	Timeouts  Timeouts
	Deadlines Deadlines
	// WarnAfter is how long an operation waits until the log says so. 0:
	// never.
	WarnAfter time.Duration
}

// Transport is what carries the packets.
type Transport string

// The transports.
const (
	TransportUDP Transport = "udp"
	TransportTCP Transport = "tcp"
	// TransportSHM is shared memory, between ranks of one host that speak the
	// extended profile.
	TransportSHM Transport = "shm"
)

// OnPartial is what to do about an unacknowledged message of several datagrams.
type OnPartial string

// The answers to a partial message.
const (
	PartialError      OnPartial = "error"
	PartialRetransmit OnPartial = "retransmit"
)

// Pace is a pause after every datagram of a large message, for an FPGA's DRAM.
type Pace struct {
	// PerDatagram is the pause. 0: none.
	PerDatagram time.Duration
	// OverWords is the largest message, in words, that goes without.
	OverWords int
}

// Timeouts are the intervals between repeats, by the packet waited for.
type Timeouts struct{ Clear, Ack, Data Backoff }

// Backoff is the wait before each repeat: First + n×Step before repeat n,
// counted from 0, for Repeats repeats, and then every Then. A Then of 0 means no
// more.
type Backoff struct {
	First, Step, Then time.Duration
	Retransmissions   int
}

// Deadlines are how long a wait may last before the operation fails, by the
// packet waited for. 0: for ever.
type Deadlines struct{ Clear, Ack, Data time.Duration }

// LinkOptions are what a configuration says about a link. Nil means that it
// does not say.
type LinkOptions struct {
	Profile         *Profile        `yaml:"profile,omitempty"`
	Transport       *Transport      `yaml:"transport,omitempty"`
	OnPartial       *OnPartial      `yaml:"on_partial,omitempty"`
	MaxMessageWords *int            `yaml:"max_message_words,omitempty"`
	MaxDatagram     *int            `yaml:"max_datagram,omitempty"`
	EagerLimit      *Size           `yaml:"eager_limit,omitempty"`
	Credit          CreditOptions   `yaml:"credit,omitempty"`
	Pace            PaceOptions     `yaml:"pace,omitempty"`
	Timeouts        TimeoutOptions  `yaml:"timeouts,omitempty"`
	Deadlines       DeadlineOptions `yaml:"deadlines,omitempty"`
	WarnAfter       *time.Duration  `yaml:"warn_after,omitempty"`
}

// PaceOptions are what a configuration says of Pace.
type PaceOptions struct {
	PerDatagram *time.Duration `yaml:"per_datagram,omitempty"`
	OverWords   *int           `yaml:"over_words,omitempty"`
}

// TimeoutOptions are what a configuration says of Timeouts.
type TimeoutOptions struct {
	Clear BackoffOptions `yaml:"clear,omitempty"`
	Ack   BackoffOptions `yaml:"ack,omitempty"`
	Data  BackoffOptions `yaml:"data,omitempty"`
}

// BackoffOptions are what a configuration says of a Backoff.
type BackoffOptions struct {
	First           *time.Duration `yaml:"first,omitempty"`
	Step            *time.Duration `yaml:"step,omitempty"`
	Retransmissions *int           `yaml:"retransmissions,omitempty"`
	Then            *time.Duration `yaml:"then,omitempty"`
}

// DeadlineOptions are what a configuration says of Deadlines.
type DeadlineOptions struct {
	Clear *time.Duration `yaml:"clear,omitempty"`
	Ack   *time.Duration `yaml:"ack,omitempty"`
	Data  *time.Duration `yaml:"data,omitempty"`
}

// LinkFor returns the link to the given rank: base, overridden by the
// configuration's defaults, overridden by what the rank's own entry says.
func (c *Config) LinkFor(rank int, base Link) Link {
	link := c.Defaults.Over(base)
	if r := c.Rank(rank); r != nil && r.Link != nil {
		link = r.Link.Over(link)
	}
	return link
}

// Over returns base with every value replaced that o sets.
func (o *LinkOptions) Over(base Link) Link {
	if o.Profile != nil {
		base.Profile = protocol.Profile(*o.Profile)
	}
	override(&base.Transport, o.Transport)
	override(&base.OnPartial, o.OnPartial)
	override(&base.MaxMessageWords, o.MaxMessageWords)
	override(&base.MaxDatagram, o.MaxDatagram)
	override(&base.EagerLimit, o.EagerLimit)
	override(&base.Credit.Messages, o.Credit.Messages)
	override(&base.Credit.Bytes, o.Credit.Bytes)
	override(&base.Pace.PerDatagram, o.Pace.PerDatagram)
	override(&base.Pace.OverWords, o.Pace.OverWords)
	o.Timeouts.Clear.over(&base.Timeouts.Clear)
	o.Timeouts.Ack.over(&base.Timeouts.Ack)
	o.Timeouts.Data.over(&base.Timeouts.Data)
	override(&base.Deadlines.Clear, o.Deadlines.Clear)
	override(&base.Deadlines.Ack, o.Deadlines.Ack)
	override(&base.Deadlines.Data, o.Deadlines.Data)
	override(&base.WarnAfter, o.WarnAfter)
	return base
}

func (o *BackoffOptions) over(b *Backoff) {
	override(&b.First, o.First)
	override(&b.Step, o.Step)
	override(&b.Retransmissions, o.Retransmissions)
	override(&b.Then, o.Then)
}

func override[T any](value *T, with *T) {
	if with != nil {
		*value = *with
	}
}
