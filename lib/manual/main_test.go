package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/lib/capi"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestPages: the pages have all options and variables that there are.
func TestPages(t *testing.T) {
	folder := t.TempDir()
	if err := write("..", folder); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string][]string{
		"zrlmpicc.1":   {"zrlmpicc - compile", "-abi=standard|mpich|upstream", "-compile_info", "ZRLMPI_CC", "zrlmpifort"},
		"zrlmpicxx.1":  {"zrlmpicxx - compile"},
		"zrlmpifort.1": {"zrlmpifort - compile", "ZRLMPI_FC"},
		"zrlmpi.7": {
			mpi.EnvSocket, mpi.EnvConfig, mpi.EnvRank, pmi.EnvFD, pmi.EnvRank, pmi.EnvSize, node.EnvAddress, capi.EnvTimeout, capi.EnvPeer,
			config.EnvCollectives, config.EnvCollectivesTable, udp.EnvOffload, shm.EnvSingleCopy,
		},
	} {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Error(err)
			continue
		}
		plain := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fP`, "", `\fR`, "", `\_`, "_").Replace(string(text))
		for _, words := range want {
			if !strings.Contains(plain, words) {
				t.Errorf("%s has no %q:\n%s", page, words, plain)
			}
		}
	}
}
