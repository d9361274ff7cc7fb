//go:build unix

package main

import (
	"os"
	"syscall"
)

// reportSignals make impair print a report.
var reportSignals = []os.Signal{syscall.SIGUSR1}
