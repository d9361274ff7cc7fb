package node

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Built-in values of the options of a link that package handshake does not define.
const (
	// warnAfter is long for a handshake, but short enough for an operator who waits for the warning.
	warnAfter = 10 * time.Second
	// fpgaPause is the pause that upstream's CPU library intends for the DRAM of an FPGA. Its actual pause is about 130
	// µs on common kernels, so receivers that use the library have never met faster senders. cpuPause, the pause for
	// them, is longer, so that a busy host can read their sockets in time.
	fpgaPause      = 1100 * time.Nanosecond
	cpuPause       = 10 * time.Microsecond
	pauseOverWords = 65536
	// maxMessageWords is the largest message accepted or sent, in words: 256 MiB. In the extended profile, only the
	// header limits a message, to 4 GiB − 1, because messages use no memory until a receive matches.
	maxMessageWords = 1 << 26
)

// Link is the link from a local rank to one peer.
type Link struct {
	config.Link
	// Handshake configures every profile except extended, which Extended configures.
	Handshake handshake.Config
	Extended  *extended.Config

	sameHost bool
	// fallbackDatagram replaces MaxDatagram if the limit of the path cannot be discovered.
	fallbackDatagram int
}

// NewLink returns the link of a local rank to another rank, which may be local as well. The error is a *config.Error.
func NewLink(cfg *config.Config, local, remote *config.Rank) (Link, error) {
	rules := rulesFor(remote)
	if local.PlaysFPGA() {
		// A stand-in must not know more about its peers than an FPGA does.
		rules = handshake.PeerRules{}
	}
	l := Link{Link: cfg.LinkFor(remote.Rank, builtIn(cfg, remote, rules))}
	l.scaleDeadlines(local, remote)
	profile, err := cfg.ProfileBetween(local, remote, protocol.CloudFPGA)
	if err != nil {
		return Link{}, err
	}
	l.Profile = profile
	if err := l.applyShared(local, remote); err != nil {
		return Link{}, err
	}
	l.sameHost = sameHost(local, remote)
	l.setHostDefaults()
	if err := l.check(local, remote); err != nil {
		return Link{}, err
	}
	if l.Profile == protocol.Extended {
		l.Extended = l.extendedConfig(cfg)
		return l, nil
	}
	l.Handshake = handshake.Config{
		Profile: l.Profile, Peer: rules, MaxWords: MessageLimit(cfg), PeerWords: remote.MaxKernelWords(),
		SameHost: l.sameHost,
		Shape:    protocol.CPUShape(), Timing: timing(l.Link, local, rules),
	}
	if l.OnPartial == config.PartialRetransmit {
		l.Handshake.OnPartial = handshake.RetransmitPartial
	}
	if remote.Kernel.BypassesEngine() {
		scaleTiming(&l.Handshake.Timing, timeScale(remote))
	}
	if local.Quirks == config.QuirksOn {
		l.Handshake.Shape = protocol.FPGAShape(true)
		l.Handshake.Quirks = handshake.Quirks{
			OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true,
			CarryOver: local.Timing == config.TimingDeployed,
		}
	}
	l.Handshake.Shape.MaxDatagram = l.MaxDatagram
	return l, nil
}

// rulesFor returns the protocol rules for a peer, which depend on the kind of the given rank.
func rulesFor(r *config.Rank) handshake.PeerRules {
	switch r.Peer {
	case config.PeerFPGA:
		return handshake.FPGAPeer(uint32(r.Rank))
	case config.PeerCPU:
		return handshake.CPUPeer()
	}
	return handshake.SoftwarePeer()
}

// builtIn returns the link that applies if the configuration sets nothing. It lacks the values that setHostDefaults
// sets.
func builtIn(cfg *config.Config, remote *config.Rank, rules handshake.PeerRules) config.Link {
	t := handshake.DefaultTiming(rules)
	l := config.Link{
		Profile: protocol.CloudFPGA, Path: config.PathKernel, OnPartial: config.PartialError, WarnAfter: warnAfter,
		Deadlines: config.Deadlines{Clear: t.ClearDeadline, Ack: t.AckDeadline, Data: t.DataDeadline},
	}
	setExtendedBuiltIn(&l, cfg)
	switch remote.Peer {
	case config.PeerFPGA:
		l.Pace = config.Pace{PerDatagram: fpgaPause, OverWords: pauseOverWords}
	case config.PeerCPU:
		l.Pace = config.Pace{PerDatagram: cpuPause, OverWords: pauseOverWords}
	}
	return l
}

// timing returns the timeouts that a local rank uses on a link, according to the rank's preset.
func timing(l config.Link, local *config.Rank, rules handshake.PeerRules) handshake.Timing {
	deployed := handshake.DeployedCPU()
	if local.PlaysFPGA() {
		deployed = handshake.DeployedFPGA(uint32(local.Rank))
	}
	if local.Timing == config.TimingDeployed {
		return deployed
	}
	t := handshake.DefaultTiming(rules)
	if local.PlaysFPGA() {
		// The rank retransmits DATA unsolicited, as an FPGA does. If it did so sooner than an FPGA, a CPU rank could
		// mistake the retransmission for the rest of the message.
		t.Ack.First = deployed.Ack.First
	}
	t.ClearDeadline, t.AckDeadline, t.DataDeadline = l.Deadlines.Clear, l.Deadlines.Ack, l.Deadlines.Data
	return t
}

// scaleDeadlines multiplies the times after which a wait fails or is logged if either rank is a simulated role, because
// nothing can be sent to a role while it computes.
func (l *Link) scaleDeadlines(local, remote *config.Rank) {
	for _, r := range []*config.Rank{local, remote} {
		l.WarnAfter *= timeScale(r)
		l.Deadlines.Clear *= timeScale(r)
	}
}

// timeScale returns the factor by which a simulated role is slower than a real one, or 1 for any other rank.
func timeScale(r *config.Rank) time.Duration {
	return time.Duration(max(1, r.Kernel.Simulation.TimeScale))
}

// scaleTiming multiplies the timeouts towards a rank whose MPE is simulated as well and counts cycles, because a
// retransmission before a slow simulation has answered can make the role fail. ClearDeadline is already scaled, by
// scaleDeadlines.
func scaleTiming(t *handshake.Timing, scale time.Duration) {
	for _, b := range []*handshake.Backoff{&t.Clear, &t.Ack, &t.Data} {
		b.First, b.Step, b.Interval = b.First*scale, b.Step*scale, b.Interval*scale
	}
	t.AckDeadline, t.DataDeadline, t.FragmentGap = t.AckDeadline*scale, t.DataDeadline*scale, t.FragmentGap*scale
}

// applyShared sets the options that must be equal on both ranks. If the other rank's entry does not set such an option,
// the value in the local rank's entry applies, so that the daemons of both ranks can use the same file.
func (l *Link) applyShared(local, remote *config.Rank) error {
	own, other := local.Link, remote.Link
	if own == nil {
		return nil
	}
	if other == nil {
		other = new(config.LinkOptions)
	}
	agree := func(key string, same bool) error {
		if same {
			return nil
		}
		return &config.Error{Key: "link." + key, Problem: fmt.Sprintf(
			"ranks %d and %d have different values for the link between them: set it for one of them, or to the same "+
				"value for both",
			local.Rank, remote.Rank)}
	}
	if own.Transport != nil {
		if err := agree("transport", other.Transport == nil || *other.Transport == *own.Transport); err != nil {
			return err
		}
		l.Transport = *own.Transport
	}
	if own.MaxDatagram != nil {
		if err := agree("max_datagram",
			other.MaxDatagram == nil || *other.MaxDatagram == *own.MaxDatagram); err != nil {
			return err
		}
		l.MaxDatagram = *own.MaxDatagram
	}
	return nil
}

// check returns an error for a link over which the two ranks cannot communicate, or which would lose every fragmented
// message.
func (l *Link) check(local, remote *config.Rank) error {
	refuse := func(format string, args ...any) error {
		return &config.Error{Key: "link.max_datagram", Problem: fmt.Sprintf("ranks %d and %d: %s",
			local.Rank, remote.Rank, fmt.Sprintf(format, args...))}
	}
	switch {
	case l.Transport == config.TransportSHM && l.Profile != protocol.Extended:
		return &config.Error{Key: "link.transport", Problem: fmt.Sprintf(
			"ranks %d and %d: shm supports only the extended profile, and this link uses %v: use udp or tcp",
			local.Rank, remote.Rank, l.Profile)}
	case l.Transport != config.TransportUDP && (local.Kernel.BypassesEngine() || remote.Kernel.BypassesEngine()):
		return &config.Error{Key: "link.transport", Problem: fmt.Sprintf(
			"ranks %d and %d: kernel %s exchanges datagrams, and this link is %s: use udp", local.Rank, remote.Rank,
			config.KernelRTLNet, l.Transport)}
	case l.Transport != config.TransportUDP || l.MaxDatagram == protocol.MaxDatagram:
		return nil
	case l.MaxDatagram > protocol.MaxDatagram && l.Profile != protocol.Extended:
		return refuse("%d exceeds the limit of a rank over UDP: use %d or less", l.MaxDatagram, protocol.MaxDatagram)
	case remote.Peer != config.PeerSoftware && !remote.IsLocal():
		return refuse("%d, but deployed nodes (peer: %s) split messages at %d: leave it out", l.MaxDatagram,
			remote.Peer, protocol.MaxDatagram)
	}
	return nil
}

// MessageLimit returns the maximum length of a message, in words, that any rank of the daemon accepts in profiles other
// than extended.
func MessageLimit(cfg *config.Config) uint32 {
	words := maxMessageWords
	for i := range cfg.Ranks {
		if o := cfg.Ranks[i].KernelOptions; o != nil {
			words = max(words, o.Words)
		}
	}
	return uint32(words)
}
