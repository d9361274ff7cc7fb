//go:build !linux

package mpe

// yield does nothing: there are no drivers on this system.
func yield() {}
