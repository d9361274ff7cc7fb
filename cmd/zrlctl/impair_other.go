//go:build !unix

package main

import "os"

// reportSignals are the signals that request a report.
var reportSignals []os.Signal
