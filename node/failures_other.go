//go:build !unix

package node

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/config"
)

// recordsDirectory returns that there is none: where files cannot be locked as on Unix, jobs write no records.
func recordsDirectory(*config.Spool) string { return "" }

func writeShared(string, int64, string, []byte) (string, error) { return "", errors.ErrUnsupported }
