package config

import (
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Record is the daemon's flight recorder.
type Record struct {
	// Memory is the number of bytes of memory for the most recent packets of all pairs. 0 disables recording.
	Memory Size `yaml:"memory"`
	// SharedMemory includes packets through shared memory.
	SharedMemory bool  `yaml:"shared_memory"`
	Spool        Spool `yaml:"spool"`
}

// Spool configures the daemon's records of failures.
type Spool struct {
	// Directory is the path of the directory for records, empty for no records. If it is nil, the default applies (see
	// Config.SpoolDirectory).
	Directory *string `yaml:"directory,omitempty"`
	// Size is the maximum total size of all records in bytes. 0 disables records.
	Size Size `yaml:"size"`
}

const (
	defaultRecordMemory = 16 << 20
	defaultSpoolSize    = 32 << 20
)

// Limits of the memory and the spool in bytes. With less memory, a record would not reach back to the cause of a
// failure. A record of the default memory takes some MiB.
const (
	minRecordMemory = 1 << 20
	maxRecordMemory = 1 << 32
	minSpoolSize    = 1 << 20
	maxSpoolSize    = 1 << 40
)

// SpoolDirectory returns the directory for records, or "" if the daemon writes none. The default is derived from the
// control socket: /run/zrlmpid/control-records for /run/zrlmpid/control.sock. Without a control socket there is no
// default.
func (c *Config) SpoolDirectory() string {
	switch s := &c.Record.Spool; {
	case s.Size == 0 || c.Record.Memory == 0:
		return ""
	case s.Directory != nil:
		return *s.Directory
	case c.ControlSocket() == "":
		return ""
	}
	return strings.TrimSuffix(c.ControlSocket(), socketSuffix) + "-records"
}

func (c *Config) validateRecord(problems *strictyaml.Problems) {
	if n := c.Record.Memory; n != 0 {
		checkRange(problems, "record.memory", n, minRecordMemory, maxRecordMemory)
	}
	if n := c.Record.Spool.Size; n != 0 {
		checkRange(problems, "record.spool.size", n, minSpoolSize, maxSpoolSize)
	}
	if d := c.Record.Spool.Directory; d != nil {
		if problem := pathProblem(*d); problem != "" {
			problems.Add("record.spool.directory", "%s", problem)
		}
	}
}
