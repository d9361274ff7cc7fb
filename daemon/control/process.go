package control

import (
	"bytes"
	"fmt"
	"os"
)

// Stopped reports whether a process of this host is stopped by a signal or a debugger. It is false for one that does not exist,
// and where the system has no /proc.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:] // the name of the program may have any character
	fields := bytes.Fields(rest)
	return len(fields) > 0 && (string(fields[0]) == "T" || string(fields[0]) == "t")
}
