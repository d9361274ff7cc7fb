//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

const canSuspend = true

// notifyResize sends on resized when the terminal's size changes, until the returned function is called.
func notifyResize(resized chan<- struct{}) func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	go func() {
		for range signals {
			select {
			case resized <- struct{}{}:
			default:
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// stopDelay is the maximum time that a stop signal takes to stop the process.
const stopDelay = 100 * time.Millisecond

// suspend stops all processes of the shell job, as Ctrl-Z does, until the shell continues the job. Without a
// job-control shell, the kernel does not stop the processes and suspend returns.
func suspend() error {
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	defer signal.Stop(goesOn)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	select {
	case <-goesOn:
	case <-time.After(stopDelay):
	}
	return nil
}
