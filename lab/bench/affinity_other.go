//go:build !linux

package bench

// stayOn does nothing where threads have no processors of their own.
func stayOn(int) error { return nil }

// startOn starts a program, wherever the system puts it.
func startOn(_ int, p *program) error { return p.Start() }
