package config

import (
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Record is the daemon's flight recorder.
type Record struct {
	// Memory is how many bytes the last packets of all pairs take. 0: nothing is recorded.
	Memory Size `yaml:"memory"`
	// SharedMemory records packets through shared memory as well.
	SharedMemory bool  `yaml:"shared_memory"`
	Spool        Spool `yaml:"spool"`
}

// Spool is where the daemon writes records of failures.
type Spool struct {
	// Directory is its path, or empty for none. Nil is the default: see Config.SpoolDirectory.
	Directory *string `yaml:"directory,omitempty"`
	// Size is how many bytes all records have at most. 0: none are written.
	Size Size `yaml:"size"`
}

const (
	defaultRecordMemory = 16 << 20
	defaultSpoolSize    = 32 << 20
)

// The bounds in bytes. Less memory holds less than what leads to a failure; a record of the default memory has some MiB.
const (
	minRecordMemory = 1 << 20
	maxRecordMemory = 1 << 32
	minSpoolSize    = 1 << 20
	maxSpoolSize    = 1 << 40
)

// SpoolDirectory returns the directory of records, or "" if none are written. Where the configuration does not say, it is beside the
// control socket: /run/zrlmpid/control-records beside /run/zrlmpid/control.sock. Without a control socket there is none.
func (c *Config) SpoolDirectory() string {
	switch s := &c.Record.Spool; {
	case s.Size == 0 || c.Record.Memory == 0:
		return ""
	case s.Directory != nil:
		return *s.Directory
	case c.Control.Socket == "":
		return ""
	}
	return strings.TrimSuffix(c.Control.Socket, socketSuffix) + "-records"
}

func (c *Config) validateRecord(p *strictyaml.Problems) {
	if n := c.Record.Memory; n != 0 {
		inRange(p, "record.memory", n, minRecordMemory, maxRecordMemory)
	}
	if n := c.Record.Spool.Size; n != 0 {
		inRange(p, "record.spool.size", n, minSpoolSize, maxSpoolSize)
	}
	if d := c.Record.Spool.Directory; d != nil {
		if problem := pathProblem(*d); problem != "" {
			p.Add("record.spool.directory", "%s", problem)
		}
	}
}
