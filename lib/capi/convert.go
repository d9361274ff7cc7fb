package capi

import "strings"

// convert implements the calls that convert C handles to ints and back. Both have the same value: the pointers of the
// standard's ABI are small numbers.
func convert(*args) {}

// conversion reports whether a call converts handles.
func conversion(name string) bool {
	for _, suffix := range []string{"_c2f", "_f2c", "_toint", "_fromint"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
