package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const collectiveRanks = `
ranks:
  - {rank: 0, address: 127.0.0.1, run: host}
  - {rank: 2, address: 127.0.0.3, peer: fpga}
  - {rank: 1, address: 127.0.0.2, peer: fpga}
`

// aTable writes a table to a file and returns its path.
func aTable(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "table.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodTable = "version: 1\nmemory:\n  collectives:\n    - {collective: bcast, ranks: 2, choose: [{by: [flat]}]}\n"

func TestCollectives(t *testing.T) {
	got, err := Collectives(mustParse(t, collectiveRanks))
	if want := (collective.Config{Force: choice.Forced{}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	cfg := mustParse(t, collectiveRanks+
		"collectives: {force: 'bcast=chain:8', order: free-first, upstream: tree, table: "+aTable(t, goodTable)+"}\n")
	got, err = Collectives(cfg)
	if err != nil || got.Table.Choose(choice.Memory, &coll.Call{Collective: coll.Bcast, Ranks: 2}).Algorithm != "flat" {
		t.Errorf("%+v, %v", got, err)
	}
	got.Table = nil
	if want := (collective.Config{Force: choice.Forced{coll.Bcast: {Algorithm: "chain", Segment: 8}},
		Order: coll.OrderFreeFirst, Tree: true, FPGAs: []int{2, 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCollectivesErrors checks that an invalid table is reported before a socket is bound.
func TestCollectivesErrors(t *testing.T) {
	cfg := mustParse(t, collectiveRanks+"collectives: {table: /no/such/table.yaml}\n")
	if _, err := Plan(cfg, cfg.Rank(0)); !errors.Is(err, os.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "collectives.table: open /no/such/table.yaml: ") {
		t.Error(err)
	}
	bad := aTable(t, strings.Replace(goodTable, "flat", "flta", 1))
	cfg.Collectives.Table = bad
	_, err := Plan(cfg, cfg.Rank(0))
	if e, ok := errors.AsType[*config.Error](err); !ok || e.File != bad || e.Line != 4 ||
		!strings.HasPrefix(err.Error(),
			"collectives.table: "+bad+`:4: memory.collectives[0].choose[0].by[0]: bcast has no algorithm "flta"`) {
		t.Error(err)
	}
}

// TestCollectivesEnv checks that programs that are ranks themselves use the environment, whether or not they have a
// configuration file.
func TestCollectivesEnv(t *testing.T) {
	t.Setenv(config.EnvCollectives, "bcast=none")
	const says = `ZRLMPI_COLLECTIVES: "bcast=none": bcast has no algorithm "none"`
	if _, err := StartLocal(1, protocol.Extended); err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Error(err)
	}
	if _, err := Open(mustParse(t, collectiveRanks), 0, nil); err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Error(err)
	}
	t.Setenv(config.EnvCollectives, "bcast=flat")
	t.Setenv(config.EnvCollectivesTable, "/no/such/table.yaml")
	if _, err := StartLocal(1, protocol.Extended); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
