package capi_test

import (
	"os"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/lib/capi"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/transport/shm"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestManual checks that the manual pages contain all options of the compilers and all variables.
func TestManual(t *testing.T) {
	for page, want := range map[string][]string{
		"../zrlmpicc.1.md": {"zrlmpicxx", "zrlmpifort", "-abi=standard|mpich|upstream", "-show", "-compile_info",
			"-link_info", "ZRLMPI_CC", "ZRLMPI_CXX", "ZRLMPI_FC"},
		"../zrlmpi.7.md": {
			job.EnvSocket, job.EnvConfig, job.EnvRank, pmi.EnvFD, pmi.EnvRank, pmi.EnvSize, node.EnvAddress,
			capi.EnvTimeout, capi.EnvPeer,
			config.EnvCollectives, config.EnvCollectivesTable, udp.EnvOffload, shm.EnvSingleCopy,
		},
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range want {
			if !strings.Contains(strings.ReplaceAll(string(text), `\_`, "_"), words) {
				t.Errorf("%s lacks %s", page, words)
			}
		}
	}
}
