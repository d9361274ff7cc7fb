package attach

import "net"

// ownerOf returns the user of the process that listens at the other end of a connection, as it was when it began to
// listen.
func ownerOf(conn *net.UnixConn) (uid int, err error) {
	c, err := CredentialsOf(conn)
	return c.UID, err
}
