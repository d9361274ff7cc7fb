//go:build !unix

package main

const canSuspend = false

// notifyResize is a no-op, because each redraw reads the terminal's size.
func notifyResize(chan<- struct{}) func() { return func() {} }

func suspend() error { return nil }
