package config

import (
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Bounds of options of the extended profile.
const (
	// maxEagerLimit is a sixteenth of maxEagerCredit. For longer messages, the round trip that an eager send saves is
	// insignificant.
	maxEagerLimit = 64 << 20
	// maxEagerCredit is a quarter of the range of the 32-bit counter that holds the credit.
	maxEagerCredit = 1 << 30
	// minExtendedDatagram is the length of a header and eight bytes, so that a message is not split into more packets
	// than it has words.
	minExtendedDatagram = protocol.ExtHeaderLen + 8
)

// validateExtended checks the options of the extended profile, and rejects options that do not apply to the profile of
// their link.
func (c *Config) validateExtended(problems *strictyaml.Problems) {
	fallback := c.Defaults.setsExtended()
	use := c.profilesInUse()
	var all profileUse
	for i := range c.Ranks {
		rank, key := &c.Ranks[i], rankKey(i)+".link"
		if rank.Peer != PeerSoftware && rank.Peer != "" {
			rank.rejectExtended(problems, key, fallback)
		}
		all.extended = all.extended || use[i].extended
		all.nonExtended = all.nonExtended || use[i].nonExtended
		if rank.Link != nil {
			rank.Link.validateUse(problems, key, use[i], "the extended profile, which this link uses,", "this link uses another")
			c.validateCredit(problems, key, rank.Link)
		}
	}
	c.Defaults.validateUse(problems, "defaults", all, "the extended profile, which every link uses,", "no link uses it")
	c.validateCredit(problems, "defaults", &c.Defaults)
}

func (o *LinkOptions) setsExtended() bool {
	return o != nil && o.Profile != nil && protocol.Profile(*o.Profile) == protocol.Extended
}

// rejectExtended rejects the extended profile on a rank that does not support it.
func (r *Rank) rejectExtended(problems *strictyaml.Problems, key string, fallback bool) {
	const advice = "silently drops its packets"
	switch {
	case r.Link.setsExtended():
		problems.Add(key+".profile", "extended is for links between zrlmpids, but rank %d is peer: %s and %s: use cloudfpga",
			r.Rank, r.Peer, advice)
	case r.linkProfile() == nil && fallback:
		problems.Add(key+".profile", "missing: the profile in defaults is extended, but rank %d is peer: %s and %s: give "+
			"this rank link: {profile: cloudfpga}",
			r.Rank, r.Peer, advice)
	}
}

// profileUse records which profiles are used by the links that a section applies to.
type profileUse struct{ extended, nonExtended bool }

// profilesInUse returns, for each rank, the profiles of this daemon's links to it. If the entries of a pair set
// different profiles, the pair counts as both; another check reports the conflict.
func (c *Config) profilesInUse() []profileUse {
	// The profile between two ranks depends on these properties only.
	type kind struct {
		software, says bool
		profile        Profile
	}
	kindOf := func(r *Rank) kind {
		k := kind{software: r.Peer == PeerSoftware, says: r.linkProfile() != nil}
		if k.says {
			k.profile = *r.linkProfile()
		}
		return k
	}
	local, one := make(map[kind]int), make(map[kind]*Rank)
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.IsLocal() {
			local[kindOf(r)]++
			one[kindOf(r)] = r
		}
	}
	use := make([]profileUse, len(c.Ranks))
	for i := range c.Ranks {
		rank, alone := &c.Ranks[i], true
		with := func(other *Rank) {
			profile, err := c.ProfileBetween(rank, other, protocol.CloudFPGA)
			use[i].extended = use[i].extended || err != nil || profile == protocol.Extended
			use[i].nonExtended = use[i].nonExtended || err != nil || profile != protocol.Extended
		}
		for k, n := range local {
			if n > 1 || n == 1 && !(rank.IsLocal() && k == kindOf(rank)) {
				with(one[k])
				alone = false
			}
		}
		if alone { // the only rank here: use its own entry
			with(&Rank{Peer: PeerSoftware})
		}
	}
	return use
}

// validateUse rejects keys that have no effect.
func (o *LinkOptions) validateUse(problems *strictyaml.Problems, key string, use profileUse, extendedLink,
	plainLink string) {
	if use.nonExtended && o.Transport != nil && *o.Transport == TransportSHM {
		problems.Add(key+".transport", "shm carries the extended profile only, and not every link here uses it: use udp or "+
			"tcp, or add profile: extended")
	}
	if !use.nonExtended {
		for _, k := range []struct {
			name  string
			given bool
		}{
			{"on_partial", o.OnPartial != nil},
			{"max_message_words", o.MaxMessageWords != nil},
			{"pace", o.Pace != PaceOptions{}},
			{"deadlines.clear", o.Deadlines.Clear != nil},
			{"deadlines.data", o.Deadlines.Data != nil},
		} {
			if k.given {
				problems.Add(key+"."+k.name, "%s does not use it: remove the key", extendedLink)
			}
		}
	}
	if !use.extended {
		for _, k := range []struct {
			name  string
			given bool
		}{{"eager_limit", o.EagerLimit != nil}, {"eager_credit", o.EagerCredit != nil}} {
			if k.given {
				problems.Add(key+"."+k.name, "only the extended profile uses it, and %s: add profile: extended, or "+
					"remove the key", plainLink)
			}
		}
		return
	}
	if n := o.MaxDatagram; n != nil && *n < minExtendedDatagram && *n >= minDatagram {
		problems.Add(key+".max_datagram", "%d is outside %d to %d: a header of the extended profile has %d bytes", *n,
			minExtendedDatagram, maxDatagram, protocol.ExtHeaderLen)
	}
}

// validateCredit checks that the credit set in a section is sufficient for at least one eager message.
func (c *Config) validateCredit(problems *strictyaml.Problems, key string, o *LinkOptions) {
	limit, bytes := o.EagerLimit, o.EagerCredit
	if limit == nil && bytes == nil {
		return
	}
	if limit == nil {
		limit = c.Defaults.EagerLimit
	}
	if bytes == nil {
		bytes = c.Defaults.EagerCredit
	}
	if limit != nil && bytes != nil && *bytes < *limit {
		problems.Add(key+".eager_credit", "%v is less than an eager_limit of %v: an eager message of that length would "+
			"never have credit: raise it, or lower eager_limit", *bytes, *limit)
	}
}

// validateTLS checks the section tls, and that at least one link uses it.
func (c *Config) validateTLS(problems *strictyaml.Problems) {
	if c.TLS == nil {
		return
	}
	for _, f := range []struct{ key, path string }{
		{"certificate", c.TLS.Certificate}, {"key", c.TLS.Key}, {"authority", c.TLS.Authority},
	} {
		if f.path == "" {
			problems.Add("tls."+f.key, "missing: tls takes the PEM files certificate, key and authority")
		}
	}
	tcp := func(o *LinkOptions) bool { return o != nil && o.Transport != nil && *o.Transport == TransportTCP }
	used := tcp(&c.Defaults)
	for i := range c.Ranks {
		used = used || tcp(c.Ranks[i].Link)
	}
	if !used {
		problems.Add("tls", "no link uses tcp: add transport: tcp, or remove the section")
	}
}

// validateAttach checks the path of the attach socket, including the default path.
func (c *Config) validateAttach(problems *strictyaml.Problems) {
	path := c.AttachSocket()
	problem := socketProblem(path)
	switch {
	case path != "" && path == c.ControlSocket():
		problems.Add("attach.socket", "%s is the control socket: set another path", strictyaml.Quote(path))
	case problem != "" && c.Attach.Socket != nil:
		problems.Add("attach.socket", "%s", problem)
	case problem != "" && socketProblem(c.ControlSocket()) == "":
		problems.Add("attach.socket", "%s: the path of %s, the default next to the control socket; set another path, or "+
			"\"\" for none", problem, strictyaml.Quote(path))
	}
}
