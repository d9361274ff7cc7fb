//go:build !unix

package main

import "os"

// reportSignals make impair print a report.
var reportSignals []os.Signal
