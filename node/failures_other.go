//go:build !unix

package node

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/config"
)

// recordsDirectories returns none: where files cannot be locked as on Unix, jobs write no records.
func recordsDirectories(*config.Spool) []string { return nil }

func writeShared([]string, int64, string, []byte) (string, error) { return "", errors.ErrUnsupported }
