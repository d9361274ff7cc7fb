//go:build !linux

package node

// ownProcessors does not know.
func ownProcessors() string { return "" }
