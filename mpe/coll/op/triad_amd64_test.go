package op

import "golang.org/x/sys/cpu"

// streamTriad returns the triad of STREAM in the loop of the kernels, or in Go.
func streamTriad() Func {
	if !cpu.X86.HasAVX2 {
		return triadLoop
	}
	return kernel(triadFloat64).combine(triadLoop, 8)
}
