package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/node"
)

// TestReloadRefused checks that a configuration that is invalid or needs a restart is refused as a whole.
func TestReloadRefused(t *testing.T) {
	c := newCluster(t)
	ranks := []string{"run: host", "run: standin", "peer: software", "run: host, link: {transport: tcp}"}
	text := c.yaml(before, ranks...)
	r := start(t, text)
	r.ping(t, 1, 100, 1)
	status := func() string {
		s := r.Status()
		return fmt.Sprint(s.Cluster, r.findRank(0).Links(), r.current.Load().Log)
	}
	want := status()
	with := func(from, to string) string { return strings.Replace(text, from, to, 1) }
	for _, tt := range []struct {
		name, text string
		restart    []string
	}{
		{"a local rank moves", with(c.addr(0), c.addr(9)),
			[]string{"rank 0: address: " + c.addr(0) + " -> " + c.addr(9)}},
		{"and another rank as well", strings.Replace(with(c.addr(0), c.addr(9)), c.addr(2), c.addr(8), 1),
			[]string{"rank 0: address: " + c.addr(0) + " -> " + c.addr(9)}},
		{"a rank is added", c.yaml(before, append(slices.Clone(ranks), "peer: software")...),
			[]string{"ranks: 4 -> 5 (attached programs and other ranks rely on the number of ranks)"}},
		{"a rank is removed", c.yaml(before, ranks[:3]...),
			[]string{"ranks: 4 -> 3 (attached programs and other ranks rely on the number of ranks)"}},
		{"a remote rank becomes local", with("peer: software", "run: host"), []string{"rank 2: run: not set -> host"}},
		{"a peer is of another kind", with("peer: software", "peer: cpu"), []string{"rank 2: peer: software -> cpu"}},
		{"a kernel", with("run: standin", "run: standin, kernel: sink"), []string{"rank 1: kernel: echo -> sink"}},
		{"the transport of a link", with("peer: software", "peer: software, link: {transport: tcp}"),
			[]string{"ranks 0 and 2: transport: udp -> tcp", "ranks 1 and 2: transport: udp -> tcp"}},
		{"the profile of a link", with("peer: software", "peer: software, link: {profile: v0.9}"),
			[]string{"ranks 0 and 2: profile: cloudfpga -> v0.9", "ranks 1 and 2: profile: cloudfpga -> v0.9",
				"ranks 3 and 2: profile: cloudfpga -> v0.9"}},
		{"datagrams", with("peer: software", "peer: software, link: {max_datagram: 800}"),
			[]string{"ranks 0 and 2: max_datagram: 1416 -> 800", "ranks 1 and 2: max_datagram: 1416 -> 800",
				"ranks 3 and 2: max_datagram: 1416 -> 800"}},
		{"sockets", with("http: {listen: \"\"}",
			"http: {listen: \"127.0.0.1:0\", pprof: true}\nattach: {socket: /run/none.sock}"),
			[]string{"attach.socket: " + config.AttachSocketFor(c.socket) + " -> /run/none.sock",
				"http.listen: not set -> 127.0.0.1:0", "http.pprof: false -> true"}},
		{"limits", "limits: {posted: 7}\n" + text, []string{"limits.posted: 1048576 -> 7"}},
		{"series of metrics", "metrics: {peers: 7}\n" + text, []string{"metrics.peers: 64 -> 7"}},
		{"collectives", "collectives: {force: bcast=flat, order: by-left}\n" + text, []string{
			"collectives.force: not set -> bcast=flat (all ranks must have the same)",
			"collectives.order: fixed -> by-left (all ranks must have the same)",
		}},
		{"TLS", "tls: {certificate: a, key: b, authority: c}\n" + text,
			[]string{"tls.authority: not set -> c", "tls.certificate: not set -> a", "tls.key: not set -> b"}},
		{"the level of a log that is not the daemon's", with("level: info", "level: warn"),
			[]string{"log.level: info -> warn"}},
		{"how the log looks", with("level: info", "format: json"), []string{"log.format: console -> json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := r.Reload(mustParse(t, tt.text))
			var refused *RefusedError
			if !errors.As(err, &refused) || !errors.Is(err, node.ErrRestart) ||
				!slices.Equal(refused.Restart, tt.restart) {
				t.Errorf("%v, want\n%q", err, tt.restart)
			}
			r.log.waitFor(t, strings.ReplaceAll(tt.restart[0], `"`, `\"`))
			if got := status(); got != want {
				t.Errorf("now it is\n%s, and was\n%s", got, want)
			}
			if good, _ := r.lastReload(); good {
				t.Error("it is said to have succeeded")
			}
		})
	}
	wrong := mustParse(t, text)
	wrong.Log.Level = "loud"
	if err := r.Reload(wrong); err == nil || errors.Is(err, node.ErrRestart) ||
		!strings.Contains(err.Error(), `"loud" is not known`) {
		t.Errorf("a wrong configuration: %v", err)
	}
	if _, err := r.client.Reload(within(t)); control.KindOf(err) != control.Refused ||
		!strings.Contains(err.Error(), errNoSource.Error()) {
		t.Errorf("a configuration that cannot be read again: %v", err)
	}
	r.ping(t, 1, 100, 1)
	_, before := r.lastReload()
	r.mustReload(t, text)
	if good, now := r.lastReload(); !good || !now.After(before) {
		t.Errorf("then one is taken: %v, at %v after %v", good, now, before)
	}
}

// TestReloadOfSharedMemory checks that a reload does not change an address that names shared memory, nor the
// values that both sides have exchanged.
func TestReloadOfSharedMemory(t *testing.T) {
	c := newCluster(t)
	text := c.yaml("defaults: {profile: extended}", "run: host", "peer: software")
	r := start(t, text)
	var refused *RefusedError
	err := r.Reload(mustParse(t, strings.Replace(text, c.addr(1), c.addr(5), 1)))
	if r.findRank(0).Links()[1].Transport != config.TransportSHM {
		t.Skip("this system shares no memory")
	}
	want := "ranks 0 and 1: address, which names the memory that they share: " + c.addr(1) + " -> " + c.addr(5)
	if !errors.As(err, &refused) || !slices.Equal(refused.Restart, []string{want}) {
		t.Errorf("%v, want %s", err, want)
	}
	err = r.Reload(mustParse(t, strings.Replace(text, "profile: extended", "profile: extended, eager_credit: 2MiB", 1)))
	if !errors.As(err, &refused) || len(refused.Restart) != 1 ||
		!strings.Contains(refused.Restart[0], "eager_credit: 1MiB -> 2MiB") {
		t.Errorf("%v", err)
	}
	r.mustReload(t, strings.Replace(text, "profile: extended",
		"profile: extended, eager_limit: 1KiB, deadlines: {ack: 1s}", 1))
	if x := r.findRank(0).Links()[1].Extended; x.EagerLimit != 1024 {
		t.Errorf("%+v", x)
	}
}
