package control

import (
	"bytes"
	"fmt"
	"os"
)

// Stopped reports whether a process of this host is stopped by a signal or a debugger. It is false if the
// process does not exist, or if the system has no /proc.
func Stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:] // the program's name may contain any character
	fields := bytes.Fields(rest)
	return len(fields) > 0 && (string(fields[0]) == "T" || string(fields[0]) == "t")
}
