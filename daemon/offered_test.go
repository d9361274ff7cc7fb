package daemon

import (
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
)

// The group that may write to the sockets may attach, and no other.
func TestAccess(t *testing.T) {
	for mode, want := range map[config.Mode][]int{0o660: {77}, 0o620: {77}, 0o640: nil, 0o600: nil, 0o666: {77}, 0o602: nil} {
		if a := access(mode, 77); !slices.Equal(a.GIDs, want) || len(a.UIDs) != 0 {
			t.Errorf("%o: %+v, want groups %v", mode, a, want)
		}
	}
}
