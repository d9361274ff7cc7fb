//go:build !linux

package kept

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// Other systems provide no identifier by which processes could detect a reboot of the host.
var errUnsupported = fmt.Errorf("state of ranks is kept on Linux only: %w", errors.ErrUnsupported)

func bootID() (id [bootLen]byte, err error) { return id, errUnsupported }

func clock() handshake.Instant { return 0 }

func create(*privatedir.Dir, string, []byte) ([]byte, fs.FileInfo, error) {
	return nil, nil, errUnsupported
}

func unmap([]byte) error { return nil }
