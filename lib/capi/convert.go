package capi

import "strings"

// convert carries out the calls that turn handles of C into ints and back. They are the same: the pointers of the
// standard's ABI are small numbers.
func convert(*args) {}

// conversion reports whether a call is one of those.
func conversion(name string) bool {
	for _, suffix := range []string{"_c2f", "_f2c", "_toint", "_fromint"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
