//go:build !unix

package control

func restrictUmask() (restore func()) { return func() {} }
