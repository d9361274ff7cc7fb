package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// software is a cluster of a host and a zrlmpid, with placeholders for the link and the defaults.
const software = "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: 10.0.0.2, peer: " +
	"software, link: {%}}\n"

// mixed adds an FPGA and a stand-in that runs here.
const mixed = software + "  - {rank: 2, address: 10.0.0.3, peer: fpga, link: {%fpga}}\n  - {rank: 3, address: " +
	"10.0.0.4, run: standin, link: {%standin}}\n"

// fill inserts the link options into one of the clusters.
func fill(cluster, link, fpga, standin string) string {
	return strings.NewReplacer("%fpga", fpga, "%standin", standin, "%", link).Replace(cluster)
}

func TestExtendedLinks(t *testing.T) {
	for _, tc := range []struct {
		name, defaults, link string
		want                 Link
	}{
		{"a rank", "{}", "{profile: extended, eager_limit: 1KiB, eager_credit: 3KiB}",
			Link{Profile: protocol.Extended, EagerLimit: 1024, EagerCredit: 3072}},
		{"defaults", "{profile: extended, eager_limit: 0, eager_credit: 1}", "{}",
			Link{Profile: protocol.Extended, EagerLimit: 0, EagerCredit: 1}},
		{"leaf by leaf", "{profile: extended, eager_limit: 5, eager_credit: 7}", "{eager_credit: 8}",
			Link{Profile: protocol.Extended, EagerLimit: 5, EagerCredit: 8}},
	} {
		c := mustParse(t, fill(software, tc.link[1:len(tc.link)-1], "", "")+"defaults: "+tc.defaults+"\n")
		got := c.LinkFor(1, base())
		want := base()
		want.Profile, want.EagerLimit, want.EagerCredit = tc.want.Profile, tc.want.EagerLimit, tc.want.EagerCredit
		if got != want {
			t.Errorf("%s: got\n%+v\nwant\n%+v", tc.name, got, want)
		}
	}
}

// TestExtendedMistakes checks the exact text of the messages.
func TestExtendedMistakes(t *testing.T) {
	const extended = "profile: extended"
	const at1, at2, at3, atD = "f.yaml:3: ranks[1].link", "f.yaml:4: ranks[2].link", "f.yaml:5: ranks[3].link",
		"f.yaml:6: defaults"
	for _, tc := range []struct{ name, file, want string }{
		{"an FPGA", fill(mixed, "", extended, ""),
			at2 + ".profile: extended is for links between zrlmpids, but rank 2 is peer: fpga and silently drops its " +
				"packets: use cloudfpga"},
		{"a stand-in", fill(mixed, "", "", extended),
			at3 + ".profile: extended is for links between zrlmpids, but rank 3 is peer: fpga and silently drops its " +
				"packets: use cloudfpga"},
		{"a CPU", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: 10.0.0.2, peer: cpu, " +
			"link: {profile: extended}}\n",
			at1 + ".profile: extended is for links between zrlmpids, but rank 1 is peer: cpu and silently drops its " +
				"packets: use cloudfpga"},
		{"defaults, and an FPGA", fill(mixed, "", "profile: cloudfpga", "") + "defaults: {profile: extended}\n",
			at3 + ".profile: missing: the profile in defaults is extended, but rank 3 is peer: fpga and silently " +
				"drops its packets: give this rank link: {profile: cloudfpga}"},

		{"keys of other profiles", fill(software, extended+", on_partial: error, max_message_words: 0, pace: "+
			"{over_words: 1}, deadlines: {clear: 0, ack: 1s, data: 1s}", "", ""),
			at1 + ".on_partial: the extended profile, which this link uses, does not use it: remove the key\n" +
				at1 + ".max_message_words: the extended profile, which this link uses, does not use it: remove " +
				"the key\n" +
				at1 + ".pace: the extended profile, which this link uses, does not use it: remove the key\n" +
				at1 + ".deadlines.clear: the extended profile, which this link uses, does not use it: remove the key\n" +
				at1 + ".deadlines.data: the extended profile, which this link uses, does not use it: remove the key"},
		{"keys of other profiles by default",
			fill(software, "on_partial: error", "", "") + "defaults: {profile: extended}\n",
			at1 + ".on_partial: the extended profile, which this link uses, does not use it: remove the key"},
		{"keys of other profiles for all",
			fill(software, extended, "", "") + "defaults: {profile: extended, pace: {over_words: 1}}\n",
			"f.yaml:4: defaults.pace: the extended profile, which every link uses, does not use it: remove the key"},
		{"eager_limit of another", fill(software, "eager_limit: 1, eager_credit: 1", "", ""),
			at1 + ".eager_limit: only the extended profile uses it, and this link uses another: add profile: " +
				"extended, or remove the key\n" +
				at1 + ".eager_credit: only the extended profile uses it, and this link uses another: add profile: " +
				"extended, or remove the key"},
		{"eager_limit of an FPGA", fill(mixed, extended, "eager_limit: 1", ""),
			at2 + ".eager_limit: only the extended profile uses it, and this link uses another: add profile: " +
				"extended, or remove the key"},
		{"eager_limit of none", fill(mixed, "", "", "") + "defaults: {eager_limit: 1}\n",
			atD + ".eager_limit: only the extended profile uses it, and no link uses it: add profile: extended, or " +
				"remove the key"},

		{"eager_limit large", fill(software, extended+", eager_limit: 65MiB", "", ""),
			at1 + ".eager_limit: 65MiB is outside 0 to 64MiB"},
		{"credit", fill(software, extended+", eager_credit: 0", "", ""),
			at1 + ".eager_credit: 0 is outside 1 to 1GiB"},
		{"credit large", fill(software, extended+", eager_credit: 1025MiB", "", ""),
			at1 + ".eager_credit: 1025MiB is outside 1 to 1GiB"},
		{"credit below eager_limit", fill(software, extended+", eager_credit: 4KiB", "", "") +
			"defaults: {eager_limit: 5KiB}\n",
			at1 + ".eager_credit: 4KiB is less than an eager_limit of 5KiB: an eager message of that length would " +
				"never have credit: raise it, or lower eager_limit"},
		{"datagram too small", fill(software, extended+", max_datagram: 72", "", ""),
			at1 + ".max_datagram: 72 is outside 88 to 65507: a header of the extended profile has 80 bytes"},
		{"datagram too small by default", fill(software, extended, "", "") + "defaults: {max_datagram: 40}\n",
			"f.yaml:4: defaults.max_datagram: 40 is outside 88 to 65507: a header of the extended profile has 80 bytes"},

		{"shared memory for another", fill(software, "transport: shm", "", ""),
			at1 + ".transport: shm carries the extended profile only, and not every link here uses it: use udp or " +
				"tcp, or add profile: extended"},
		{"shared memory for all", fill(mixed, extended, "", "") + "defaults: {transport: shm}\n",
			atD + ".transport: shm carries the extended profile only, and not every link here uses it: use udp or " +
				"tcp, or add profile: extended"},

		{"no file of three", host + "defaults: {transport: tcp}\ntls: {}\n",
			"f.yaml:3: tls.certificate: missing: tls takes the PEM files certificate, key and authority\n" +
				"f.yaml:3: tls.key: missing: tls takes the PEM files certificate, key and authority\n" +
				"f.yaml:3: tls.authority: missing: tls takes the PEM files certificate, key and authority"},
		{"tls without tcp", host + "tls: {certificate: a, key: b, authority: c}\n",
			"f.yaml:2: tls: no link uses tcp: add transport: tcp, or remove the section"},
		{"unknown key of tls", host + "tls: {cert: a}\n",
			`f.yaml:2: tls: unknown key "cert": the keys here are certificate, key, authority`},
		{"queues", host + "limits: {unexpected: 0, posted: 67108865}\n",
			"f.yaml:2: limits.unexpected: 0 is outside 1 to 67108864\nf.yaml:2: limits.posted: 67108865 is outside 1 " +
				"to 67108864"},
		{"memory of attached programs", host + "limits: {attached_bytes: 1023KiB}\n",
			"f.yaml:2: limits.attached_bytes: 1023KiB is outside 1MiB to 4096GiB"},
		{"attach", host + "attach: {socket: a}\n",
			`f.yaml:2: attach.socket: "a" is not an absolute path: start it with /, or write "" for no socket`},
		{"attach by the control socket", host + "control: {socket: /run/s}\nattach: {socket: /run/s}\n",
			`f.yaml:3: attach.socket: "/run/s" is the control socket: set another path`},
		{"default attach path too long",
			"control: {socket: /" + strings.Repeat("a", 104) + "}\nranks: [{rank: 0, address: 127.0.0.1, run: host}]\n",
			`f.yaml:1: attach.socket: the path has 117 bytes, but the path of a Unix socket has at most 107: the path of "/` +
				strings.Repeat("a", 59) + `…", the default next to the control socket; set another path, or "" for none`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(tc.file), "f.yaml")
			if got := text(err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestExtendedInPlace checks valid uses of the extended options.
func TestExtendedInPlace(t *testing.T) {
	const twoHosts = "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host, link: {%}}\n  - {rank: 1, address: " +
		"10.0.0.2, run: host}\n"
	for name, file := range map[string]string{
		"next to an FPGA": fill(mixed, "profile: extended, eager_limit: 1, on_partial: error", "", ""),
		"defaults for software links": fill(mixed, "", "profile: cloudfpga, on_partial: retransmit",
			"profile: v0.9") + "defaults: {profile: extended, eager_limit: 1, pace: {over_words: 1}}\n",
		"said by the local rank": strings.Replace(fill(software, "eager_limit: 2", "", ""), "run: host",
			"run: host, link: {profile: extended}", 1),
		"said by the other local rank": fill(twoHosts, "profile: extended, eager_credit: 4MiB", "", ""),
		"the only rank here, alone": "ranks: [{rank: 0, address: 10.0.0.1, run: host, link: {profile: " +
			"extended, eager_limit: 1}}]\n",
		"smallest datagram":           fill(software, "profile: extended, max_datagram: 88", "", ""),
		"smaller datagrams of others": fill(mixed, "profile: extended", "max_datagram: 40", ""),
		"eager credit of just one message": fill(software, "profile: extended, eager_limit: 64MiB, eager_credit: 64MiB",
			"", ""),
		"shared memory":    fill(software, "profile: extended, transport: shm", "", ""),
		"tls":              fill(software, "transport: tcp", "", "") + "tls: {certificate: a, key: b, authority: c}\n",
		"tls by default":   host + "defaults: {transport: tcp}\ntls: {certificate: a, key: b, authority: c}\n",
		"no attach socket": host + "attach: {socket: \"\"}\n",
		"no sockets":       host + "control: {socket: \"\"}\nattach:\ntls:\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, file)
			if _, again := reparse(t, c); again.AttachSocket() != c.AttachSocket() {
				t.Errorf("printed and read again, the attach socket is %q instead of %q", again.AttachSocket(),
					c.AttachSocket())
			}
		})
	}
}

func TestProfileBetween(t *testing.T) {
	for _, tc := range []struct {
		name     string
		file     string
		a, b     int
		want     protocol.Profile
		conflict bool
	}{
		{"nobody says", fill(mixed, "", "", ""), 0, 1, protocol.V09, false},
		{"one says", fill(mixed, "profile: extended", "", ""), 0, 1, protocol.Extended, false},
		{"the FPGA's peers say", fill(mixed, "profile: extended", "", ""), 1, 2, protocol.V09, false},
		{"the stand-in's peers say", fill(mixed, "profile: extended", "", ""), 3, 1, protocol.V09, false},
		{"by default", fill(mixed, "", "profile: cloudfpga", "profile: v0.9") + "defaults: {profile: extended}\n", 0, 1,
			protocol.Extended, false},
		{"by default but for the FPGA",
			fill(mixed, "", "profile: cloudfpga", "profile: v0.9") + "defaults: {profile: extended}\n", 0, 2,
			protocol.CloudFPGA, false},
		{"another by default", fill(mixed, "profile: extended", "", "") + "defaults: {profile: cloudfpga}\n", 1, 3,
			protocol.CloudFPGA, false},
		{"both say the same", fill(mixed, "profile: v0.9", "profile: v0.9", ""), 1, 2, protocol.V09, false},
		{"both say", fill(mixed, "profile: cloudfpga", "profile: v0.9", ""), 1, 2, 0, true},
	} {
		c := mustParse(t, tc.file)
		for _, pair := range [][2]int{{tc.a, tc.b}, {tc.b, tc.a}} {
			got, err := c.ProfileBetween(c.Rank(pair[0]), c.Rank(pair[1]), protocol.V09)
			var e *Error
			if got != tc.want || errors.As(err, &e) != tc.conflict ||
				tc.conflict && (e.Key != "link.profile" ||
					!strings.Contains(err.Error(), "ranks 1 and 2") &&
						!strings.Contains(err.Error(), "ranks 2 and 1")) {
				t.Errorf("%s, ranks %v: %v, %v; want %v", tc.name, pair, got, err, tc.want)
			}
		}
	}
	// Even if the configuration was not checked, an FPGA never gets packets that it drops.
	extended := Profile(protocol.Extended)
	c := New(Rank{Rank: 0, Run: RunHost}, Rank{Rank: 1, Peer: PeerFPGA, Link: &LinkOptions{Profile: &extended}})
	c.Defaults.Profile = &extended
	if got, err := c.ProfileBetween(&c.Ranks[0], &c.Ranks[1], protocol.CloudFPGA); got != protocol.CloudFPGA ||
		err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAttachSocket(t *testing.T) {
	for control, want := range map[string]string{
		"/run/zrlmpid/control.sock":  "/run/zrlmpid/control-attach.sock",
		"/run/user/7/zrlmpid.sock":   "/run/user/7/zrlmpid-attach.sock",
		"/tmp/here":                  "/tmp/here-attach.sock",
		"":                           "",
		"/run/x.sock/control.socket": "/run/x.sock/control.socket-attach.sock",
	} {
		c := New()
		c.Control.Socket = &control // as by a flag or the environment
		if got := c.AttachSocket(); got != want {
			t.Errorf("control socket %q: %q, want %q", control, got, want)
		}
	}
	for _, want := range []string{"", "/s"} {
		c := mustParse(t, host+"attach: {socket: \""+want+"\"}\n")
		if got := c.AttachSocket(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPathsBeginAtTheFilesFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.yaml")
	file := host + "defaults: {transport: tcp}\ntls: {certificate: a.pem, key: ../keys/b.pem, authority: /c.pem}\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	want := TLS{Certificate: filepath.Join(dir, "a.pem"), Key: filepath.Join(filepath.Dir(dir), "keys/b.pem"),
		Authority: "/c.pem"}
	if *c.TLS != want {
		t.Errorf("%+v, want %+v", *c.TLS, want)
	}
	if c := mustParse(t, file); c.TLS.Certificate != "a.pem" {
		t.Errorf("from a stream: %+v", *c.TLS)
	}
}

func TestWarnsOfPlainLinks(t *testing.T) {
	const ranks = `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, peer: software, link: {transport: tcp}}
  - {rank: 2, address: 10.0.0.3, peer: software}
  - {rank: 3, address: 10.0.0.4, peer: software, link: {transport: udp}}
  - {rank: 4, address: 10.0.0.5, peer: cpu}
`
	const tls = "tls: {certificate: a, key: b, authority: c}\n"
	for file, want := range map[string]string{
		ranks:       "",
		ranks + tls: "links to these ranks are not encrypted, because tls works only over tcp: 2, 3",
	} {
		if got := strings.Join(mustParse(t, file).Warnings(), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
