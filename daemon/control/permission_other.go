//go:build !unix

package control

// whoMayConnect returns a hint, for an error message, about which users may connect to a socket.
func whoMayConnect(string) string {
	return "only its owner and group may use it: join that group, or change control.mode"
}
