//go:build !unix

package main

const canSuspend = false

// notifyResize does nothing: every redraw reads the size.
func notifyResize(chan<- struct{}) func() { return func() {} }

func suspend() error { return nil }
