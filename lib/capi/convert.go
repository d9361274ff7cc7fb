package capi

import "strings"

// convert implements the calls that convert between C handles and ints. Nothing needs to be converted, because
// both have the same value: in the standard's ABI, handles are pointers whose values are small numbers.
func convert(*args) {}

// isConversion reports whether a call converts handles.
func isConversion(name string) bool {
	for _, suffix := range []string{"_c2f", "_f2c", "_toint", "_fromint"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
