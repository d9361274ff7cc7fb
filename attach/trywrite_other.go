//go:build !unix

package attach

import "io"

// trier returns a function that leaves all writing to those who wait.
func trier(io.Writer) func(b []byte) int { return func([]byte) int { return 0 } }
