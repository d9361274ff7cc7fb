//go:build unix

package main

import (
	"os"
	"syscall"
)

// reportSignals are the signals that request a report.
var reportSignals = []os.Signal{syscall.SIGUSR1}
