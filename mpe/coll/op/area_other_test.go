//go:build !linux

package op

import "testing"

func newArea(_ *testing.T, n int) area { return make(area, n) }
