package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Link holds all options of the link from a local rank to one peer. The daemon supplies a built-in Link for each kind
// of peer, and LinkFor overrides its values with those in the configuration.
type Link struct {
	// Profile is the dialect of the header.
	Profile   protocol.Profile
	Transport Transport
	// Path is the way of datagrams between the rank and its network device.
	Path Path
	// OnPartial is the action when a fragmented message is not acknowledged. A retransmission may corrupt the message
	// in a deployed FPGA.
	OnPartial OnPartial
	// MaxMessageWords is the length, in words, of the messages into which larger sends are split. The peer's program
	// must receive the resulting messages. 0 disables splitting.
	MaxMessageWords int
	// MaxDatagram is the largest datagram in bytes, header included.
	MaxDatagram int
	// EagerLimit is the maximum length, in bytes, of a message sent to a peer of the extended profile before a receive
	// matches. 0 disables eager sends.
	EagerLimit Size
	// EagerCredit is the number of bytes of eager messages that a peer of the extended profile may send before receives
	// match.
	EagerCredit Size
	Pace        Pace
	Deadlines   Deadlines
	// WarnAfter is the duration of a wait after which the log contains a warning. 0 disables the warning.
	WarnAfter time.Duration
}

// Transport is the transport of the packets.
type Transport = state.Transport

// The transports.
const (
	TransportUDP = state.TransportUDP
	TransportTCP = state.TransportTCP
	TransportSHM = state.TransportSHM
)

// Path is the way of datagrams between a rank and its network device.
type Path string

// The values of Path.
const (
	// PathKernel is the UDP socket of the kernel.
	PathKernel Path = "kernel"
	// PathXDP is an AF_XDP socket, past the kernel's network stack.
	PathXDP Path = "xdp"
	// PathAuto is PathXDP if the host supports and permits it, and no packet filter applies, and otherwise PathKernel.
	PathAuto Path = "auto"
)

// OnPartial is the action to take when a fragmented message is not acknowledged.
type OnPartial string

// The values of OnPartial.
const (
	PartialError      OnPartial = "error"
	PartialRetransmit OnPartial = "retransmit"
)

// Pace is a pause after every datagram of a large message, for an FPGA's DRAM.
type Pace struct {
	// PerDatagram is the length of the pause. 0 disables it.
	PerDatagram time.Duration
	// OverWords is the maximum length, in words, of a message sent without pauses.
	OverWords int
}

// Deadlines limits how long an operation waits for each type of packet before it fails. 0 means no limit.
type Deadlines struct{ Clear, Ack, Data time.Duration }

// LinkOptions holds the options of a link that a configuration sets. An option that is not set is nil.
type LinkOptions struct {
	Profile         *Profile        `yaml:"profile,omitempty"`
	Transport       *Transport      `yaml:"transport,omitempty"`
	Path            *Path           `yaml:"path,omitempty"`
	OnPartial       *OnPartial      `yaml:"on_partial,omitempty"`
	MaxMessageWords *int            `yaml:"max_message_words,omitempty"`
	MaxDatagram     *int            `yaml:"max_datagram,omitempty"`
	EagerLimit      *Size           `yaml:"eager_limit,omitempty"`
	EagerCredit     *Size           `yaml:"eager_credit,omitempty"`
	Pace            PaceOptions     `yaml:"pace,omitempty"`
	Deadlines       DeadlineOptions `yaml:"deadlines,omitempty"`
	WarnAfter       *time.Duration  `yaml:"warn_after,omitempty"`
}

// PaceOptions holds the fields of Pace that a configuration sets. A field that is not set is nil.
type PaceOptions struct {
	PerDatagram *time.Duration `yaml:"per_datagram,omitempty"`
	OverWords   *int           `yaml:"over_words,omitempty"`
}

// DeadlineOptions holds the fields of Deadlines that a configuration sets. A field that is not set is nil.
type DeadlineOptions struct {
	Clear *time.Duration `yaml:"clear,omitempty"`
	Ack   *time.Duration `yaml:"ack,omitempty"`
	Data  *time.Duration `yaml:"data,omitempty"`
}

// LinkFor returns the link to the given rank: base, overridden by the configuration's defaults, and then by the rank's
// entry.
func (c *Config) LinkFor(rank int, base Link) Link {
	link := c.Defaults.ApplyTo(base)
	if r := c.Rank(rank); r != nil && r.Link != nil {
		link = r.Link.ApplyTo(link)
	}
	return link
}

// RanksWithLinks returns a copy of the configuration's ranks. For the given ranks, it copies the link options and calls
// the function set on the copies.
func (c *Config) RanksWithLinks(given []int, set func(*LinkOptions)) []Rank {
	ranks := slices.Clone(c.Ranks)
	for i := range ranks {
		rank := &ranks[i]
		if !slices.Contains(given, rank.Rank) {
			continue
		}
		link := LinkOptions{}
		if rank.Link != nil {
			link = *rank.Link
		}
		set(&link)
		rank.Link = &link
	}
	return ranks
}

// ApplyTo returns a copy of base in which the values set in o replace the values of base.
func (o *LinkOptions) ApplyTo(base Link) Link {
	if o.Profile != nil {
		base.Profile = protocol.Profile(*o.Profile)
	}
	override(&base.Transport, o.Transport)
	override(&base.Path, o.Path)
	override(&base.OnPartial, o.OnPartial)
	override(&base.MaxMessageWords, o.MaxMessageWords)
	override(&base.MaxDatagram, o.MaxDatagram)
	override(&base.EagerLimit, o.EagerLimit)
	override(&base.EagerCredit, o.EagerCredit)
	override(&base.Pace.PerDatagram, o.Pace.PerDatagram)
	override(&base.Pace.OverWords, o.Pace.OverWords)
	override(&base.Deadlines.Clear, o.Deadlines.Clear)
	override(&base.Deadlines.Ack, o.Deadlines.Ack)
	override(&base.Deadlines.Data, o.Deadlines.Data)
	override(&base.WarnAfter, o.WarnAfter)
	return base
}

// YAML returns the options that a link of this profile and transport uses, as a YAML mapping in one line.
func (l *Link) YAML() (string, error) {
	var node yaml.Node
	if err := node.Encode(l.options()); err != nil {
		return "", err
	}
	node.Style = yaml.FlowStyle
	text, err := yaml.Marshal(&node)
	return strings.Join(strings.Fields(string(text)), " "), err
}

// options returns the options that a link of this profile and transport uses.
func (l *Link) options() LinkOptions {
	o := LinkOptions{
		Profile: new(Profile(l.Profile)), Transport: &l.Transport, Deadlines: DeadlineOptions{Ack: &l.Deadlines.Ack},
		WarnAfter: &l.WarnAfter,
	}
	if l.Transport == TransportUDP {
		o.Path, o.MaxDatagram = &l.Path, &l.MaxDatagram
	}
	if l.Profile == protocol.Extended {
		o.EagerLimit, o.EagerCredit = &l.EagerLimit, &l.EagerCredit
		return o
	}
	o.OnPartial, o.MaxMessageWords = &l.OnPartial, &l.MaxMessageWords
	o.Pace = PaceOptions{PerDatagram: &l.Pace.PerDatagram, OverWords: &l.Pace.OverWords}
	o.Deadlines.Clear, o.Deadlines.Data = &l.Deadlines.Clear, &l.Deadlines.Data
	return o
}

// override sets a value if the configuration contains the option.
func override[T any](value *T, with *T) {
	if with != nil {
		*value = *with
	}
}
