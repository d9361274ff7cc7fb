package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

var (
	logLevels    = []string{LevelDebug, LevelInfo, LevelWarn, LevelError}
	logFormats   = []string{FormatConsole, FormatJSON}
	offloadModes = []string{OffloadAuto, OffloadOff}
)

// Limits of the receive buffer in bytes. A smaller buffer cannot hold a burst, and a larger size does not fit in the
// int32 in which the kernel stores it.
const (
	minReceiveBuffer = 4 << 10
	maxReceiveBuffer = 1 << 30
)

// Limits of the memory in bytes for attached programs. With less memory, no program would work.
const (
	minAttached = 1 << 20
	maxAttached = 1 << 42
)

// maxQueue is the maximum number of messages or receives that may wait in a communicator. Each takes some hundred bytes
// of memory.
const maxQueue = 1 << 26

// maxSocketPath is the maximum length in bytes of the path of a Unix socket on Linux, without the terminating zero.
const maxSocketPath = 107

// Validate checks the whole configuration. It returns nil, or an error that joins an *Error for every problem. Parse
// calls it; call it for a configuration that the program has made or changed.
func (c *Config) Validate() error {
	problems := strictyaml.NewProblems(&c.source.Source)
	checkOneOf(problems, "log.level", c.Log.Level, logLevels...)
	checkOneOf(problems, "log.format", c.Log.Format, logFormats...)
	if problem := socketProblem(c.ControlSocket()); problem != "" {
		problems.Add("control.socket", "%s", problem)
	}
	c.Control.Allow.validate(problems, "control.allow")
	c.validateAttach(problems)
	c.validateHTTP(problems)
	c.validateRecord(problems)
	checkDuration(problems, "stop_timeout", c.StopTimeout)
	checkRange(problems, "limits.receive_buffer", c.Limits.ReceiveBuffer, minReceiveBuffer, maxReceiveBuffer)
	checkOneOf(problems, "limits.offload", c.Limits.Offload, offloadModes...)
	checkRange(problems, "limits.unexpected", c.Limits.Unexpected, 1, maxQueue)
	checkRange(problems, "limits.posted", c.Limits.Posted, 1, maxQueue)
	if n := c.Limits.AttachedBytes; n != 0 {
		checkRange(problems, "limits.attached_bytes", n, minAttached, maxAttached)
	}
	c.Defaults.validate(problems, "defaults")
	c.validateRanks(problems)
	c.validateExtended(problems)
	c.validateTLS(problems)
	c.validateCollectives(problems)
	return problems.Err()
}

// socketProblem describes why a socket's path is invalid, or returns "" if it is valid.
func socketProblem(path string) string {
	switch {
	case path == "":
		return ""
	case strings.ContainsRune(path, 0):
		return "a path cannot contain a zero byte"
	case !filepath.IsAbs(path):
		// A relative path is useless to zrlctl, which runs in another directory. Abstract sockets (@name) have no owner
		// or mode.
		return fmt.Sprintf("%s is not an absolute path: start it with /, or write \"\" for no socket",
			strictyaml.Quote(path))
	case len(path) > maxSocketPath:
		return fmt.Sprintf("the path has %d bytes, but the path of a Unix socket has at most %d", len(path),
			maxSocketPath)
	}
	return ""
}

func checkOneOf[S ~string](p *strictyaml.Problems, key string, got S, options ...S) {
	if !slices.Contains(options, got) {
		p.Add(key, "%s", describeUnknown(got, options))
	}
}

func describeUnknown[S ~string](got S, options []S) string {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = string(o)
	}
	return fmt.Sprintf("%s is not known%s: it is one of %s", strictyaml.Quote(string(got)),
		strictyaml.SuggestName(string(got), names), strings.Join(names, ", "))
}
