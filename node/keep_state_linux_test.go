package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

const keepYAML = `
ranks:
  - {rank: 0, address: "127.77.1.1:2718", run: host}
  - {rank: 1, address: "127.77.1.2:2718", peer: fpga}
  - {rank: 2, address: "127.77.1.3:2718", peer: software, link: {profile: extended}}
  - {rank: 3, address: "127.77.1.4:2718", peer: software, link: {transport: tcp}}
  - {rank: 4, address: "127.77.1.5:2718", run: standin}
`

func keepRank(t *testing.T, rank int) *Rank {
	t.Helper()
	cfg, err := config.Parse(strings.NewReader(keepYAML), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Plan(cfg, cfg.Rank(rank))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.closeStateFile() })
	return r
}

// TestKeepState checks that only a host keeps state, and only about peers that do not notice when its process is
// replaced. Reset with a configuration discards it.
func TestKeepState(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	r := keepRank(t, 0)
	if err := r.keepUserState(); err != nil {
		t.Fatal(err)
	}
	for rank, want := range []bool{false, true, false, false, true} {
		if got := r.keepers[rank] != nil; got != want {
			t.Errorf("of rank %d something is kept: %v", rank, got)
		}
	}
	k := handshake.SavedState{DeadEnd: true, DeadOnSend: true, DeadWords: 1000}
	r.keeperFor(1).Restore(0)
	r.keeperFor(1).Keep(&k)
	again := keepRank(t, 0)
	if err := again.keepUserState(); err != nil || again.keeperFor(1).Restore(0) != k {
		t.Errorf("%v, %+v", err, again.keeperFor(1).Restore(0))
	}
	for _, want := range []bool{true, false} {
		if was, err := ForgetState(r.Config, r.Self, 1); was != want || err != nil {
			t.Errorf("%v, %v, want %v", was, err, want)
		}
	}
	after := keepRank(t, 0)
	if err := after.keepUserState(); err != nil || after.keeperFor(1).Restore(0) != (handshake.SavedState{}) {
		t.Errorf("%v, %+v", err, after.keeperFor(1).Restore(0))
	}
	standin := keepRank(t, 4)
	if err := standin.KeepState(filepath.Join(state, "other")); err != nil || standin.stateFile != nil ||
		len(standin.sessionlessPeers()) > 0 {
		t.Errorf("the stand-in: %v", err)
	}
}

// TestStateNotKept checks that an unsafe directory and a corrupt file are reported, and that the rank runs without kept
// state.
func TestStateNotKept(t *testing.T) {
	state := t.TempDir()
	r := keepRank(t, 0)
	dir := filepath.Join(state, stateSubdir)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	err := r.KeepState(state)
	if !errors.Is(err, privatedir.ErrUnsafe) || !strings.Contains(err.Error(), state) ||
		!strings.Contains(err.Error(), "no state can be kept") {
		t.Errorf("%v", err)
	}
	if k := r.keeperFor(1).Restore(0); k != (handshake.SavedState{}) {
		t.Errorf("%+v", k)
	}
	r.keeperFor(1).Keep(&handshake.SavedState{})
	name := filepath.Join(dir, "rank0-127.77.1.1-2718.kept")
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(name, []byte("nonsense"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := r.KeepState(state); err == nil || !strings.Contains(err.Error(), name) ||
		!strings.Contains(err.Error(), "ignoring the state kept by an earlier process") || r.stateFile == nil {
		t.Errorf("%v", err)
	}
}
