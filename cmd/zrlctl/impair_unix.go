//go:build unix

package main

import (
	"os"
	"syscall"
)

// reportSignals lists the signals by which the user requests a report.
var reportSignals = []os.Signal{syscall.SIGUSR1}
