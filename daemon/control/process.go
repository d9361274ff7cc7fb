package control

import (
	"bytes"
	"fmt"
	"os"
)

// IsStopped reports whether a signal or a debugger has stopped a process on this host. It returns false if the process
// does not exist or the system has no /proc.
func IsStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:] // the program's name may contain any character, including ')'
	fields := bytes.Fields(rest)
	return len(fields) > 0 && (string(fields[0]) == "T" || string(fields[0]) == "t")
}
