package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// interruptedError reports that a signal ended the command. It is the cause with which withSignals cancels its context.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string { return "interrupted" }
func (e *interruptedError) Unwrap() error { return context.Canceled }

// withSignals returns a context that is canceled by SIGINT or SIGTERM. A second signal ends the process.
func withSignals(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		s := <-received
		signal.Stop(received)
		cancel(&interruptedError{s})
	}()
	return ctx
}

// signalExitCode returns the exit code that shells report for a command ended by a signal, or 0 if the command was not
// ended by a signal.
func signalExitCode(ctx context.Context) int {
	e, ok := errors.AsType[*interruptedError](context.Cause(ctx))
	if !ok {
		return 0
	}
	if s, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailure
}
