//go:build !linux

package bench

// stayOn does nothing on systems without thread affinity.
func stayOn(int) error { return nil }

// startOn starts a program on any processor.
func startOn(_ int, p *program) error { return p.Start() }
