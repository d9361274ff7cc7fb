//go:build !unix

package main

const canSuspend = false

// notifyResize does nothing: the size is looked up whenever something is drawn.
func notifyResize(chan<- struct{}) func() { return func() {} }

func suspend() error { return nil }
