package xdp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetGRO makes a device of the calling thread's network namespace coalesce packets, or not.
func SetGRO(device string, on bool) error {
	value := ethtoolValue{command: unix.ETHTOOL_SGRO}
	if on {
		value.value = 1
	}
	return ethtool(device, unsafe.Pointer(&value))
}
