//go:build !unix

package node

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/config"
)

// recordsDirectories returns nil: without Unix file locks, jobs write no records.
func recordsDirectories(*config.Spool) []string { return nil }

func writeShared([]string, int64, string, []byte) (string, error) { return "", errors.ErrUnsupported }
