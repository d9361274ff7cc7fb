package tune

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
)

func TestPrint(t *testing.T) {
	table, err := collectives.Load(strings.NewReader(`
version: 1
measured: {cpu: Some CPU, cores: 8, system: Linux 6, version: v1, time: 2026-01-02T03:04:05Z, rounds: 3}
memory:
  over: shm
  link: {alpha: 850.5, beta: 0.0912}
  collectives:
    - collective: barrier
      ranks: 2
      choose: [{by: [toggle]}]
      bytes: [0]
      medians: [{by: toggle, us: [0.5]}]
    - collective: bcast
      ranks: 2
      choose:
        - {up_to: 100, by: [binomial]}
        - {by: ['chain:8KiB', binomial]}
      bytes: [8, 1024, 65536]
      medians:
        - {by: binomial, us: [1.234, 12.34, 1234]}
        - {by: chain, us: [2, 0, 0]}
        - {by: 'chain:8KiB', us: [0, 0, 99.96]}
        - {by: 'chain:16KiB', us: [0, 0, 101]}
    - collective: bcast
      ranks: 4
      choose: [{by: [flat]}]
      bytes: [8]
      medians: [{by: flat, us: [0.012]}]
network:
  link: {alpha: 1, beta: 1}
  collectives:
    - collective: scan
      ranks: 2
      choose: [{up_to: 1KiB, by: [doubling]}, {by: [chain]}]
`), "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Print(&b, table); err != nil {
		t.Fatal(err)
	}
	const want = `Medians in µs (rounds: 3), on Some CPU, 8 cores, Linux 6, with zrlmpid v1, at 2026-01-02T03:04:05Z.

== memory, over shm: a message of n bytes takes 0.8505 µs + n × 0.0912 ns ==

barrier
  RANKS  BYTES  toggle   TAKEN
      2          0.500  toggle

bcast
  RANKS  BYTES  binomial         chain    flat       TAKEN
      2      8      1.23          2.00       -    binomial
      2   1KiB      12.3             -       -  chain:8KiB
      2  64KiB      1234  100.0 (8KiB)       -  chain:8KiB
      4      8         -             -  0.0120        flat

== network: a message of n bytes takes 0.001 µs + n × 1 ns ==

scan
  RANKS  BYTES     TAKEN
      2  ≤1KiB  doubling
      2    any     chain
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	estimated, err := collectives.Load(strings.NewReader("version: 1\nestimated: true\nmemory: {collectives: []}\n"),
		"t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := Print(&b, estimated); err != nil ||
		!strings.HasPrefix(b.String(), "Estimated by formulas; nothing was measured.\n") {
		t.Errorf("%v, %s", err, b.String())
	}
}
