//go:build !amd64

package op

func supportedKernels() []*kernelTable { return nil }
