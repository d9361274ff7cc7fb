package tcp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// errPeerUsesTLS is returned if a TLS record arrives on a connection without TLS.
var errPeerUsesTLS = errors.New("received a TLS record instead of a ZRLMPI packet: the peer uses TLS and this rank " +
	"does not: configure tls on both, or on neither")

// CredentialError reports a problem with the rank's own certificate, key or authority.
type CredentialError struct {
	// What is "certificate", "key" or "authority".
	What string
	// Path is the file that the value comes from, empty if it does not come from a file.
	Path string
	Err  error
}

// Error names the file, the cause, and a remedy.
func (e *CredentialError) Error() string {
	text := "tls: " + e.What
	if e.Path != "" {
		text += " " + e.Path
	}
	return text + ": " + e.Err.Error() + certificateAdvice(e.Err, "this rank")
}

// Unwrap returns the cause.
func (e *CredentialError) Unwrap() error { return e.Err }

// TLSError reports that TLS prevented a connection: one side rejected the certificate of the other, or the peer
// does not use TLS.
type TLSError struct {
	// Addr is the peer's end of the connection.
	Addr netip.AddrPort
	Err  error
}

// Error names the peer, the cause, and a remedy.
func (e *TLSError) Error() string {
	return fmt.Sprintf("tls with %v: %v%s", e.Addr, e.Err, e.advice())
}

// Unwrap returns the cause.
func (e *TLSError) Unwrap() error { return e.Err }

// TLSFault returns the *TLSError that prevented the last connection to a peer. It returns nil if there was no such
// error or the peer is connected.
func (c *Conn) TLSFault(rank int) error {
	var fault *TLSError
	if l, last := c.peers[rank].currentLink(); l != nil || !errors.As(last, &fault) {
		return nil
	}
	return fault
}

// advice names the likely mistake in the configuration.
func (e *TLSError) advice() string {
	var op *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(e.Err, &record) && protocol.BeginsWithMark(record.RecordHeader[:]):
		return ": received a ZRLMPI packet instead of a TLS record: the peer does not use TLS: configure tls on " +
			"both, or on neither"
	case errors.As(e.Err, &record):
		return fmt.Sprintf(": received % x, which begins neither a TLS record nor a ZRLMPI packet",
			record.RecordHeader)
	case errors.Is(e.Err, os.ErrDeadlineExceeded), errors.Is(e.Err, io.EOF), errors.Is(e.Err, syscall.ECONNRESET):
		return ": no answer to the handshake: does the peer have tls configured?"
	case errors.As(e.Err, &op) && op.Op == "remote error":
		return ": the peer rejected the connection: see its log"
	}
	return certificateAdvice(e.Err, "the peer")
}

// certificateAdvice returns a remedy for a certificate error. whose names the certificate's owner.
func certificateAdvice(err error, whose string) string {
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, new(x509.HostnameError)):
		return fmt.Sprintf(": the certificate of %s must contain the IP address of the rank map as a subject "+
			"alternative name", whose)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf(": the certificate of %s must be signed by the authority that is configured here", whose)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf(": renew the certificate of %s, or set the clock of this machine", whose)
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Sprintf(": the certificate of %s must be for serverAuth and clientAuth", whose)
	}
	return ""
}

// isTLSFault reports whether err, from a TLS connection, was caused by data that the peer sent or failed to send.
// Network errors, and errors that show that the peer is gone, do not count.
func isTLSFault(err error) bool {
	return !slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, context.Canceled},
		func(gone error) bool { return errors.Is(err, gone) })
}
