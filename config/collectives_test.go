package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

func TestCollectives(t *testing.T) {
	c := mustParse(t, host)
	if x := c.Collectives; x.Table != "" || x.Force != "" || x.Order.Form() != coll.OrderFixed ||
		x.Upstream != UpstreamFlat || len(x.ParseForce()) > 0 || c.UpstreamFPGAs() != nil {
		t.Errorf("%+v", x)
	}
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		name := coll.Algorithms(of)[0].Name
		c := mustParse(t, host+"collectives: {force: "+choice.CollectiveName(of)+"="+name+"}\n")
		if f := c.Collectives.ParseForce(); len(f) != 1 || f[of] != (choice.Choice{Algorithm: name}) {
			t.Errorf("%v: %v", of, f)
		}
	}
	c = mustParse(t, host+"collectives: {force: 'bcast=atomic:64KiB, scan=chain:7'}\n")
	if got := c.Collectives.ParseForce().String(); got != "bcast=atomic:64KiB,scan=chain:7" {
		t.Error(got)
	}
	for name, form := range map[string]coll.OrderForm{"fixed": coll.OrderFixed, "free-first": coll.OrderFreeFirst,
		"by-left": coll.OrderByLeft} {
		if c := mustParse(t, host+"collectives: {order: "+name+"}\n"); c.Collectives.Order.Form() != form {
			t.Errorf("%s is %v", name, c.Collectives.Order.Form())
		}
	}
}

func TestUpstreamFPGAs(t *testing.T) {
	const ranks = `
ranks:
  - {rank: 3, address: 10.0.0.4, peer: fpga}
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, run: standin}
  - {rank: 2, address: 10.0.0.3, peer: cpu}
collectives: `
	for text, want := range map[string][]int{
		"{}": nil, "{upstream: flat}": nil, "{upstream: tree}": {3, 1}, "{upstream: tree, fpgas: [1, 2, 3]}": {1, 2, 3},
	} {
		if got := mustParse(t, ranks+text+"\n").UpstreamFPGAs(); !slices.Equal(got, want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestCollectivesErrors(t *testing.T) {
	for file, want := range map[string]string{
		"{tabel: x}": "f.yaml:2: collectives: unknown key \"tabel\" (did you mean \"table\"?): the keys " +
			"here are table, force, order, upstream, fpgas",
		"{table: \"a\\0\"}":      "f.yaml:2: collectives.table: a path cannot contain a zero byte",
		"{force: {bcast: flat}}": "f.yaml:2: collectives.force: want one value here, not keys with values",
		"{force: brodcast=flat}": "f.yaml:2: collectives.force: \"brodcast=flat\": unknown collective \"brodcast\" " +
			"(did you mean \"bcast\"?): the collectives are barrier, bcast, reduce, allreduce, gather, scatter, " +
			"allgather, alltoall, reduce_scatter, scan, exscan",
		"\n  force: bcast=atmoic": "f.yaml:3: collectives.force: \"bcast=atmoic\": bcast has no algorithm \"atmoic\" " +
			"(did you mean \"atomic\"?): " +
			"it has binomial, flat, scatter-allgather, chain, atomic, tree, shared",
		"{force: 'scan=chain:x'}": `f.yaml:2: collectives.force: "scan=chain:x": segments of "x": give a size from 1 to 1GiB, as in chain:64KiB`,
		"{order: byleft}":         `f.yaml:2: collectives.order: "byleft" is not known (did you mean "by-left"?): it is one of fixed, free-first, by-left`,
		"{upstream: tre}":         `f.yaml:2: collectives.upstream: "tre" is not known (did you mean "tree"?): it is one of flat, tree`,
		"{fpgas: [0]}": "f.yaml:2: collectives.fpgas: it is used with upstream: tree only: " +
			"add that, or remove the key",
		"{upstream: tree, fpgas: [1, 0, 0]}": "f.yaml:2: collectives.fpgas: there is no rank 1\nf.yaml:2: " +
			"collectives.fpgas: rank 0 is listed twice: remove one of them",
		"{upstream: tree, fpgas: [0, 1.5, a]}": "f.yaml:2: collectives.fpgas[1]: \"1.5\" is not a whole " +
			"number\nf.yaml:2: collectives.fpgas[2]: \"a\" is not a whole number",
	} {
		c, err := Parse(strings.NewReader(host+"collectives: "+file+"\n"), "f.yaml")
		if got := text(err); c != nil || got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

func TestCollectivesEnv(t *testing.T) {
	c := mustParse(t, host+"collectives: {table: file.yaml, force: 'bcast=flat,scan=doubling'}\n")
	env := map[string]string{EnvCollectives: "", EnvCollectivesTable: ""}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	apply := func(force, table string) error {
		env[EnvCollectives], env[EnvCollectivesTable] = force, table
		return c.ApplyEnv(lookup)
	}
	if err := apply("", ""); err != nil || c.Collectives.Table != "file.yaml" ||
		c.Collectives.Force != "bcast=flat,scan=doubling" {
		t.Errorf("empty: %+v, %v", c.Collectives, err)
	}
	if err := apply("bcast=atomic:65536,allreduce=ring", "t.yaml"); err != nil ||
		c.Collectives.Table != "t.yaml" || c.Collectives.Force != "bcast=atomic:65536,allreduce=ring" {
		t.Errorf("%+v, %v", c.Collectives, err)
	}
	for _, x := range []struct{ force, table, key, want string }{
		{"bcast=x", "", EnvCollectives, `ZRLMPI_COLLECTIVES: "bcast=x": bcast has no algorithm "x": it has`},
		{"", "\x00", EnvCollectivesTable, "ZRLMPI_COLLECTIVES_TABLE: a path cannot contain a zero byte"},
	} {
		err := apply(x.force, x.table)
		var e *Error
		if !errors.As(err, &e) || e.Key != x.key || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%v", err)
		}
	}
}

// TestCollectivesTablePath checks that the path of the table is relative to the file that contains it, but not if it
// comes from the environment.
func TestCollectivesTablePath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(host+"collectives: {table: t.yaml}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{"": filepath.Join(filepath.Dir(file), "t.yaml"), "x/y.yaml": "x/y.yaml"} {
		t.Setenv(EnvCollectivesTable, env)
		c, err := Load(file)
		if err != nil || c.Collectives.Table != want {
			t.Errorf("%v, %v, want %s", c, err, want)
		}
	}
}
