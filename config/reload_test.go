package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestStopTimeout(t *testing.T) {
	const ranks = "ranks: [{rank: 0, address: 127.0.0.1, run: host}]\n"
	for text, want := range map[string]time.Duration{
		"": 2 * time.Second, "stop_timeout: 0s\n": 0, "stop_timeout: 90s\n": 90 * time.Second,
	} {
		if c := mustParse(t, text+ranks); c.StopTimeout != want {
			t.Errorf("%q: %v, want %v", text, c.StopTimeout, want)
		}
	}
	c := mustParse(t, ranks)
	for _, wrong := range []time.Duration{-1, 25 * time.Hour} {
		if c.StopTimeout = wrong; c.Validate() == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}

func TestDiff(t *testing.T) {
	const base = `
log: {level: info}
defaults: {deadlines: {ack: 5s}}
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin}
  - {rank: 2, address: 127.0.0.3, peer: fpga, link: {pace: {per_datagram: 2us}}}
`
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", base, "[]"},
		{"order of ranks, and a default that is said", `
metrics: {peers: 64}
defaults: {deadlines: {ack: 5000ms}}
ranks:
  - {rank: 2, address: 127.0.0.3:2718, peer: fpga, link: {pace: {per_datagram: 2us}}}
  - {rank: 0, address: 127.0.0.1, run: host, peer: software}
  - {rank: 1, address: 127.0.0.2, run: standin, kernel: echo}
`, "[]"},
		{"the socket that follows another",
			"control: {socket: " + DefaultSocket() + "}\nattach: {socket: " + AttachSocketFor(DefaultSocket()) +
				"}" + base, "[]"},
		{"values", `
log: {level: debug}
stop_timeout: 3s
defaults: {deadlines: {data: 1s}}
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 1, address: 127.0.0.2, run: standin, kernel: sink, quirks: off}
  - {rank: 2, address: 127.0.0.4, peer: fpga, link: {on_partial: retransmit}}
`, "[defaults.deadlines.ack: 5s -> not set defaults.deadlines.data: not set -> 1s log.level: info -> debug stop_timeout: 2s -> 3s " +
			"rank 1: kernel: echo -> sink rank 1: quirks: on -> off rank 1: timing: deployed -> default " +
			"rank 2: address: 127.0.0.3:2718 -> 127.0.0.4:2718 rank 2: link.on_partial: not set -> retransmit " +
			"rank 2: link.pace.per_datagram: 2µs -> not set]"},
		{"ranks", base + "  - {rank: 3, address: 127.0.0.9, peer: cpu}\n", "[ranks: 3 -> 4]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Diff(mustParse(t, base), mustParse(t, tt.text))
			if err != nil || fmt.Sprint(got) != tt.want {
				t.Errorf("%v, %v, want\n%s", got, err, tt.want)
			}
		})
	}
}

// TestArgumentsOfKernels checks that the arguments of a program, which may be secret, appear only in the configuration
// file.
func TestArgumentsOfKernels(t *testing.T) {
	file := func(kernel string) *Config {
		return mustParse(t, "ranks: [{rank: 0, address: 127.0.0.1, run: standin, kernel: \""+kernel+"\"}]\n")
	}
	one, two := file("exec:/bin/program --key=hidden"), file("exec:/bin/program --key=another hidden one")
	r := one.Rank(0)
	shown := fmt.Sprint(r.Kernel) + fmt.Sprintf("%+v %v", *r, r.Kernel)
	encoded, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := Diff(one, two)
	if want := "[rank 0: kernel: exec:/bin/program -> exec:/bin/program with other arguments]"; err != nil ||
		fmt.Sprint(changes) != want {
		t.Errorf("%v, %v, want %s", changes, err, want)
	}
	_, err = ParseKernel("exe:/bin/program --key=hidden")
	shown += string(encoded) + fmt.Sprint(changes, err)
	if strings.Contains(shown, "hidden") || strings.Count(shown, "/bin/program") < 6 {
		t.Error(shown)
	}
	if text, err := one.YAML(); err != nil ||
		!strings.Contains(string(text), "kernel: exec:/bin/program --key=hidden\n") {
		t.Errorf("%s, %v", text, err)
	}
}
