//go:build !amd64

package op

// streamTriad returns the triad of STREAM in Go.
func streamTriad() Func { return triadLoop }
