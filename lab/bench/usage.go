package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// threadsTime returns the processor time used by all threads of another process on Linux, and 0 on other systems.
func threadsTime(pid int) time.Duration {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has exited
		}
		ns, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.ParseInt(ns, 10, 64); err == nil {
			sum += time.Duration(n)
		}
	}
	return sum
}

// peakMemory returns the peak memory of a process in KiB on Linux, and 0 on other systems. A pid of "self" means this
// process.
func peakMemory(pid string) int {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err == nil {
				return kib
			}
		}
	}
	return 0
}
