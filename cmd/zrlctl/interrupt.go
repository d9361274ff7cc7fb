package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// interruptedError is the end of a command by a signal. It is the cause of the context of main.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string { return "interrupted" }
func (e *interruptedError) Unwrap() error { return context.Canceled }

// withSignals returns a context that SIGINT and SIGTERM end. A second one ends the process.
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

// signalled returns the exit code of a command that a signal has ended, as shells have it, or 0.
func signalled(ctx context.Context) int {
	e, ok := errors.AsType[*interruptedError](context.Cause(ctx))
	if !ok {
		return 0
	}
	if s, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailure
}
