package config

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestInvalidFiles checks files that are well-formed but invalid.
func TestInvalidFiles(t *testing.T) {
	rank := func(rest string) string { return "ranks:\n  - {rank: 0, address: 10.0.0.1, " + rest + "}\n" }
	standin := func(rest string) string {
		return "ranks:\n  - {rank: 0, address: 10.0.0.1, peer: cpu}\n  - {rank: 1, address: 10.0.0.2, run: standin, " +
			rest + "}\n"
	}
	defaults := func(link string) string { return host + "defaults: {" + link + "}\n" }
	const at0, at1, atLink = "f.yaml:2: ranks[0]", "f.yaml:3: ranks[1]", "f.yaml:2: defaults"
	for _, tc := range []struct{ name, file, want string }{
		{"level", host + "log: {level: trace}\n",
			`f.yaml:2: log.level: "trace" is not known: it is one of debug, info, warn, error`},
		{"format", host + "log: {format: jsno}\n",
			`f.yaml:2: log.format: "jsno" is not known (did you mean "json"?): it is one of console, json`},
		{"relative socket", host + "control: {socket: a.sock}\n",
			`f.yaml:2: control.socket: "a.sock" is not an absolute path: start it with /, or write "" for no socket`},
		{"long socket", host + "control: {socket: /" + strings.Repeat("a", 107) + "}\n",
			`f.yaml:2: control.socket: the path has 108 bytes, but the path of a Unix socket has at most 107`},
		{"zero byte", host + "control: {socket: \"/a\\0\"}\n",
			`f.yaml:2: control.socket: a path cannot contain a zero byte`},
		{"small buffer", host + "limits: {receive_buffer: 1}\n",
			`f.yaml:2: limits.receive_buffer: 1 is outside 4KiB to 1GiB`},
		{"large buffer", host + "limits: {receive_buffer: 2GiB}\n",
			`f.yaml:2: limits.receive_buffer: 2GiB is outside 4KiB to 1GiB`},
		{"offload", host + "limits: {offload: on}\n",
			`f.yaml:2: limits.offload: "on" is not known: it is one of auto, off`},
		{"no offload", host + "limits: {offload: }\n",
			`f.yaml:2: limits.offload: has no value: give it one, or remove the key`},

		{"nothing local", rank("peer: fpga"),
			`f.yaml:1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin`},
		{"no rank", "ranks: [{address: 10.0.0.1, run: host}]\n",
			"f.yaml:1: ranks[0].rank: missing: number the ranks 0 to 0\nf.yaml:1: ranks: rank 0 is missing: list " +
				"every rank of the cluster, including remote ranks"},
		{"gap", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 2, address: 10.0.0.2, peer: cpu}\n",
			"f.yaml:3: ranks[1].rank: 2 is out of range: 2 ranks are numbered 0 to 1\nf.yaml:1: ranks: rank 1 is " +
				"missing: list every rank of the cluster, including remote ranks"},
		{"twice", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 0, address: 10.0.0.2, peer: cpu}\n",
			"f.yaml:3: ranks[1].rank: rank 0 is already ranks[0]\nf.yaml:1: ranks: rank 1 is missing: list every " +
				"rank of the cluster, including remote ranks"},
		{"no address", "ranks: [{rank: 0, run: host}]\n",
			`f.yaml:1: ranks[0].address: missing: give the IP address of the rank`},
		{"unspecified", "ranks: [{rank: 0, address: 0.0.0.0, run: host}]\n",
			`f.yaml:1: ranks[0].address: 0.0.0.0 is not the address of one node: give the address that the other ranks send to`},
		{"multicast", "ranks: [{rank: 0, address: ff02::1, run: host}]\n",
			`f.yaml:1: ranks[0].address: ff02::1 is not the address of one node: give the address that the other ranks send to`},
		{"same address", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: " +
			"\"10.0.0.1:2718\", peer: cpu}\n",
			`f.yaml:3: ranks[1].address: 10.0.0.1:2718 is already the address of rank 0: give rank 1 its own address`},
		{"IP shared with an FPGA",
			"ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: 10.0.0.1, peer: fpga}\n",
			`f.yaml:3: ranks[1].address: ranks 0 and 1 share 10.0.0.1, but the cluster has an FPGA (rank 1), which distinguishes its peers by IP address only: give each rank its own IP address`},
		{"IP shared in sight of an FPGA", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, " +
			"address: 10.0.0.1, peer: cpu}\n  - {rank: 2, address: 10.0.0.3, run: standin}\n",
			`f.yaml:3: ranks[1].address: ranks 0 and 1 share 10.0.0.1, but the cluster has an FPGA (rank 2), which distinguishes its peers by IP address only: give each rank its own IP address`},

		{"run", rank("run: stand-in"),
			at0 + `.run: "stand-in" is not known (did you mean "standin"?): it is one of host, standin`},
		{"peer", rank("run: host, peer: fgpa"),
			at0 + `.peer: "fgpa" is not known (did you mean "fpga"?): it is one of fpga, cpu, software`},
		{"remote without peer", host[:len(host)-2] + ", {rank: 1, address: 10.0.0.1}]\n",
			`f.yaml:1: ranks[1].peer: missing: set the kind of a remote rank to fpga, cpu or software; a rank of this daemon needs run: host or run: standin`},
		{"host as an FPGA", rank("run: host, peer: fpga"),
			at0 + `.peer: a host program does not behave like an FPGA: use run: standin, with kernel: "exec:/path/prog" for your own program`},
		{"stand-in's keys", rank("run: host, kernel: echo, kernel_options: {count: 1}, quirks: off"),
			at0 + ".kernel: only a stand-in uses it: add run: standin to rank 0, or remove the key\n" +
				at0 + ".kernel_options: only a stand-in uses it: add run: standin to rank 0, or remove the key\n" +
				at0 + ".quirks: only a stand-in uses it: add run: standin to rank 0, or remove the key"},
		{"faults of a host", rank("run: host, faults: {rules: [loss 1%]}"),
			at0 + ".faults: only a stand-in uses it: add run: standin to rank 0, or remove the key"},
		{"faults without rules", standin("faults: {seed: 7}"),
			at1 + ".faults.rules: no rules given: add a rule, such as loss 5%, or remove faults"},
		{"faults of streams", standin("faults: {rules: [delay 1ms, reset 1%]}"),
			at1 + ".faults.rules[1]: reset is not possible over udp, which has no connections: use loss or partition"},
		{"faults of ranks that do not exist", standin("faults: {rules: [from 2 loss 1%, to 10.9.9.9 loss 1%]}"),
			at1 + ".faults.rules[0]: from 2: there is no rank 2: the ranks are 0 to 1\n" +
				at1 + ".faults.rules[1]: to 10.9.9.9: no rank has the address 10.9.9.9"},
		{"a fault that is no fault", standin("faults: {rules: [lose 1%]}"),
			at1 + `.faults.rules[0]: unknown word "lose" (did you mean "loss"?): the words are from, to, packet, nth, after, for, loss, burst, duplicate, reorder, late, corrupt, delay, rate, queue, partition, reset, close`},
		{"allow of a stand-in", standin("allow: {users: [alice]}"),
			at1 + ".allow: programs attach to host ranks only: add run: host to rank 1, or remove the key"},
		{"allow nobody in particular", rank("run: host, allow: {users: [alice, \"\"], groups: [\"\"]}"),
			at0 + ".allow.users[1]: empty: give a name or a number, or remove the entry\n" +
				at0 + ".allow.groups[0]: empty: give a name or a number, or remove the entry"},
		{"allow as a list", rank("run: host, allow: [alice]"), at0 + ".allow: want keys with values here, not a list"},
		{"quirks of software", standin("peer: software, quirks: on"),
			at1 + `.quirks: they apply to an FPGA, but this stand-in is peer: software: remove one of the two`},
		{"unknown quirks", standin("quirks: some"), at1 + `.quirks: "some" is not known: it is one of on, off`},
		{"unknown timing", standin("timing: fast"),
			at1 + `.timing: "fast" is not known: it is one of deployed, default`},
		{"timing of a remote rank", "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: " +
			"10.0.0.2, peer: cpu, timing: default}\n",
			at1 + `.timing: rank 1 is remote and sets its own timeouts: remove the key, or add run: host or run: standin`},

		{"options of a program", standin("kernel: \"exec:/p\", kernel_options: {words: 600000, count: 1, lines: 2}"),
			at1 + ".kernel_options.count: kernel exec does not use it: its options are words; options of the program " +
				"itself are its arguments\n" +
				at1 + ".kernel_options.lines: kernel exec does not use it: its options are words; options of the " +
				"program itself are its arguments"},
		{"rtl-net as software", standin("kernel: \"rtl-net:/p\", peer: software"),
			at1 + ".peer: software, but kernel rtl-net is an FPGA to the other ranks: remove the key"},
		{"keys of an engine for rtl-net",
			standin("kernel: \"rtl-net:/p\", quirks: on, timing: default, kernel_options: {count: 7}"),
			at1 + ".kernel_options.count: kernel rtl-net does not use it: its options are words; options precede the " +
				"simulator, as in rtl-net:seed=7 PROGRAM\n" +
				at1 + ".quirks: kernel rtl-net has its own MPE: remove the key\n" +
				at1 + ".timing: kernel rtl-net has its own MPE: remove the key"},
		{"a port that no shell opens", "ranks:\n  - {rank: 0, address: 10.0.0.1, peer: cpu}\n  - {rank: 1, address: " +
			"\"10.0.0.2:2750\", run: standin, kernel: \"rtl-net:/p\"}\n",
			at1 + ".address: an FPGA's shell opens ports 2718 to 2749 only: give rank 1 one of them"},
		{"options of another kernel", standin("kernel: echo, kernel_options: {count: 1, interval: 1s}"),
			at1 + ".kernel_options.count: kernel echo does not use it: its options are peer, words\n" +
				at1 + ".kernel_options.interval: kernel echo does not use it: its options are peer, words"},
		{"datatype of a kernel that takes both", standin("kernel: sink, kernel_options: {datatype: float}"),
			at1 + ".kernel_options.datatype: kernel sink does not use it: its options are peer, words"},
		{"options of jacobi", standin("kernel: jacobi, kernel_options: {dimensions: 1, iterations: 1, norm_limit: 1}"),
			at1 + ".kernel_options.dimensions: kernel jacobi does not use it: its options are words, datatype, " +
				"columns, lines\n" +
				at1 + ".kernel_options.iterations: kernel jacobi does not use it: its options are words, datatype, " +
				"columns, lines\n" +
				at1 + ".kernel_options.norm_limit: kernel jacobi does not use it: its options are words, datatype, " +
				"columns, lines"},
		{"options of kmeans", standin("kernel: kmeans, kernel_options: {columns: 3, lines: 1, datatype: float}"),
			at1 + ".kernel_options.datatype: kernel kmeans does not use it: its options are words, dimensions, " +
				"iterations, norm_limit\n" +
				at1 + ".kernel_options.columns: kernel kmeans does not use it: its options are words, dimensions, " +
				"iterations, norm_limit\n" +
				at1 + ".kernel_options.lines: kernel kmeans does not use it: its options are words, dimensions, " +
				"iterations, norm_limit"},
		{"a grid without inner cells", standin("kernel: jacobi, kernel_options: {columns: 2, lines: -1}"),
			at1 + ".kernel_options.columns: 2 is outside 3 to 16384\n" + at1 +
				".kernel_options.lines: -1 is outside 0 to 16384"},
		{"a large grid", standin("kernel: jacobi, kernel_options: {columns: 16385, lines: 16385}"),
			at1 + ".kernel_options.columns: 16385 is outside 3 to 16384\n" + at1 +
				".kernel_options.lines: 16385 is outside 0 to 16384"},
		{"kmeans beyond bounds",
			standin("kernel: kmeans, kernel_options: {dimensions: 1025, iterations: -1, norm_limit: 2147483648}"),
			at1 + ".kernel_options.dimensions: 1025 is outside 0 to 1024\n" +
				at1 + ".kernel_options.iterations: -1 is outside 0 to 2147483647\n" +
				at1 + ".kernel_options.norm_limit: 2147483648 is outside 0 to 2147483647"},
		{"a worker as the host", rank("run: standin, kernel: kmeans"),
			at0 + ".kernel: kmeans needs a host program on rank 0, but this is rank 0: use it for other ranks"},
		{"another one", rank("run: standin, kernel: backsub"),
			at0 + ".kernel: backsub needs a host program on rank 0, but this is rank 0: use it for other ranks"},
		{"options of matvec", standin("kernel: matvec, kernel_options: {words: 7, datatype: float, lines: 3}"),
			at1 + ".kernel_options.datatype: kernel matvec does not use it: its options are words\n" +
				at1 + ".kernel_options.lines: kernel matvec does not use it: its options are words"},
		{"peer of a ring", "ranks:\n  - {rank: 0, address: 10.0.0.1, peer: cpu}\n  - {rank: 1, address: 10.0.0.2, " +
			"run: standin, kernel: ring, kernel_options: {peer: 1}}\n",
			at1 + `.kernel_options.peer: kernel ring does not use it: its options are words, count, datatype`},
		{"words below 0", standin("kernel: \"exec:/p\", kernel_options: {words: -1}"),
			at1 + `.kernel_options.words: -1 is outside 0 to 268435456`},
		{"too many words", standin("kernel_options: {words: 268435457}"),
			at1 + `.kernel_options.words: 268435457 is outside 0 to 268435456`},
		{"count below 0", standin("kernel: source, kernel_options: {count: -1}"),
			at1 + `.kernel_options.count: -1 is less than 0: use 0 for no limit, or more`},
		{"interval below 0", standin("kernel: source, kernel_options: {interval: -1s}"),
			at1 + `.kernel_options.interval: -1s is outside 0s to 24h0m0s`},
		{"talks to itself", rank("run: standin"),
			at0 + `.kernel_options.peer: rank 0 cannot be its own peer: set the rank that kernel echo exchanges messages with`},
		{"source for every rank", standin("kernel: source, kernel_options: {peer: -1}"),
			at1 + `.kernel_options.peer: there is no rank -1: set the rank that kernel source exchanges messages with`},
		{"talks to nobody", standin("kernel_options: {peer: 7}"),
			at1 + `.kernel_options.peer: there is no rank 7: set the rank that kernel echo exchanges messages with`},

		{"transport", defaults("transport: quic"),
			atLink + `.transport: "quic" is not known: it is one of udp, tcp, shm`},
		{"on_partial", defaults("on_partial: retry"),
			atLink + `.on_partial: "retry" is not known: it is one of error, retransmit`},
		{"max_message_words", defaults("max_message_words: -1"),
			atLink + `.max_message_words: -1 is outside 0 to 268435456`},
		{"max_datagram small", defaults("max_datagram: 32"), atLink + `.max_datagram: 32 is outside 40 to 65507`},
		{"max_datagram large", defaults("max_datagram: 65512"), atLink + `.max_datagram: 65512 is outside 40 to 65507`},
		{"max_datagram uneven", defaults("max_datagram: 1420"),
			atLink + `.max_datagram: 1420 is not a multiple of 8, and an FPGA would shift the data: use 1416`},
		{"pace", defaults("pace: {per_datagram: 1.1s, over_words: -1}"),
			atLink + ".pace.per_datagram: 1.1s is outside 0s to 10ms\n" + atLink +
				".pace.over_words: -1 is outside 0 to 268435456"},
		{"deadlines", defaults("deadlines: {clear: -1s, ack: -1s, data: -1s}, warn_after: -1s"),
			atLink + ".deadlines.clear: -1s is outside 0s to 24h0m0s\n" + atLink +
				".deadlines.ack: -1s is outside 0s to 24h0m0s\n" +
				atLink + ".deadlines.data: -1s is outside 0s to 24h0m0s\n" + atLink +
				".warn_after: -1s is outside 0s to 24h0m0s"},
		{"link of a rank", rank("run: host, link: {max_datagram: 8}"),
			at0 + `.link.max_datagram: 8 is outside 40 to 65507`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(tc.file), "f.yaml")
			if got := text(err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestValidFiles checks unusual files that are valid.
func TestValidFiles(t *testing.T) {
	for name, file := range map[string]string{
		"software ranks share an IP": "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: " +
			"10.0.0.1, peer: cpu}\n",
		"host as upstream's": "ranks: [{rank: 0, address: 10.0.0.1, run: host, peer: cpu}]\n",
		"empty sections":     host + "log:\ncontrol:\ndefaults:\nlimits:\n",
		"explicit 0 of other kernels": "ranks:\n  - {rank: 0, address: 10.0.0.1, run: host}\n  - {rank: 1, address: " +
			"10.0.0.2, run: standin, kernel: sink, kernel_options: {count: 0}}\n",
		"edges":            host + "defaults: {max_datagram: 40, pace: {per_datagram: 0}, deadlines: {ack: 24h}}\n",
		"largest datagram": host + "defaults: {max_datagram: 65504}\n",
	} {
		t.Run(name, func(t *testing.T) { mustParse(t, file) })
	}
}

// cluster returns n ranks: rank 0, a host, and others from the given entry, each with its own IP address.
func cluster(n int, rest string) string {
	var b strings.Builder
	b.WriteString(host[:len(host)-2])
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, ", {rank: %d, address: 10.0.%d.%d, %s}", i, i/256, i%256, rest)
	}
	return b.String() + "]\n"
}

func TestClusterSize(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		rest  string
		want  string
	}{
		{"64 with FPGAs", 64, "peer: fpga", ""},
		{"65 with FPGAs", 65, "peer: fpga",
			"f.yaml:1: ranks: 65 ranks, but an FPGA (rank 1) supports at most 64: use fewer ranks, or give stand-ins " +
				"quirks: off"},
		{"65 with stand-ins", 65, "run: standin",
			"f.yaml:1: ranks: 65 ranks, but an FPGA (rank 1) supports at most 64: use fewer ranks, or give stand-ins " +
				"quirks: off"},
		{"65 with unlimited stand-ins", 65, "run: standin, quirks: off", ""},
		{"128 with CPUs", 128, "peer: cpu", ""},
		{"129 with CPUs", 129, "peer: cpu",
			"f.yaml:1: ranks: 129 ranks, but upstream's CPU library (rank 1) supports at most 128: use fewer ranks"},
		{"1000 of software", 1000, "peer: software", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(strings.NewReader(cluster(tc.ranks, tc.rest)), "f.yaml")
			if got := text(err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTooManyRanksOnOneIP checks the error if no port is left.
func TestTooManyRanksOnOneIP(t *testing.T) {
	ranks := make([]Rank, 65536-2718+1)
	ip := netip.MustParseAddr("10.0.0.1")
	for i := range ranks {
		ranks[i] = Rank{Rank: i, Address: Address{netip.AddrPortFrom(ip, 0)}, Run: RunHost}
	}
	want := "ranks[62818].address: no port is left for rank 62818 on 10.0.0.1: give it one"
	if got := text(New(ranks...).Validate()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestValidateProgrammatic checks values that a file cannot contain.
func TestValidateProgrammatic(t *testing.T) {
	profile := Profile(200)
	c := New(Rank{Address: Address{netip.MustParseAddrPort("10.0.0.1:1")}, Run: RunStandin,
		Kernel: Kernel{Name: KernelExec},
		Link:   &LinkOptions{Profile: &profile}},
		Rank{Rank: 1, Address: Address{netip.MustParseAddrPort("10.0.0.2:1")}, Run: RunStandin,
			Kernel: Kernel{Name: "jazz"}})
	want := `ranks[0].link.profile: unknown profile "profile(200)": the profiles are "cloudfpga", "v0.9" and "extended"
ranks[0].kernel: exec: no program: write exec:/path/prog, followed by its arguments
ranks[1].kernel: "jazz" is not known: it is one of echo, ring, sink, source, jacobi, kmeans, matvec, backsub`
	if got := text(c.Validate()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWarnings(t *testing.T) {
	c := mustParse(t, `
ranks:
  - {rank: 0, address: "127.0.0.1:4000", run: host}
  - {rank: 1, address: 10.0.0.1, peer: fpga, link: {transport: tcp}}
  - {rank: 2, address: 127.0.0.2, peer: software, link: {transport: tcp}}
`)
	want := `rank 0 has port 4000, but a deployed FPGA (rank 1) sends to and from port 2718 only
rank 0 runs here on the loopback address 127.0.0.1 and cannot reach rank 1 at 10.0.0.1:2718
the link to rank 1 is tcp, but deployed nodes (peer: fpga) speak UDP only`
	if got := strings.Join(c.Warnings(), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWarningOfControlSocket checks the warning that the control socket bypasses the allow of a rank.
func TestWarningOfControlSocket(t *testing.T) {
	const ranks = "ranks: [{rank: 0, address: 10.0.0.1, run: host}, {rank: 1, address: 10.0.0.2, run: host, allow: " +
		"{users: [alice]}}]\n"
	for control, want := range map[string]string{
		"{}": "rank 1 has allow, but all users that control.mode 0660 admits to the control socket can " +
			"send and receive as it: set control.allow",
		"{mode: 0602}": "rank 1 has allow, but all users that control.mode 0602 admits to the control socket can " +
			"send and receive as it: set control.allow",
		"{mode: 0644}":   "",
		"{socket: \"\"}": "",
		"{allow: {}}":    "",
	} {
		if got := strings.Join(mustParse(t, "control: "+control+"\n"+ranks).Warnings(), "\n"); got != want {
			t.Errorf("%s: %q, want %q", control, got, want)
		}
	}
	if got := mustParse(t, strings.Replace(ranks, "allow: {users: [alice]}", "", 1)).Warnings(); got != nil {
		t.Errorf("without allow: %q", got)
	}
}
