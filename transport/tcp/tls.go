package tcp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// TLS configures the security of a rank's connections: TLS 1.3 with certificates on both sides. The
// peer's certificate must be signed by the authority and contain the peer's IP address from the rank map.
type TLS struct {
	// Certificate is presented to the peers; it includes the private key. Both ends of a connection use it, so any
	// extended key usages that it lists must include serverAuth and clientAuth.
	Certificate tls.Certificate
	// Authority holds the certificates with which the certificates of all ranks have been signed.
	Authority *x509.CertPool
}

// LoadTLS reads the rank's certificate (with any intermediate certificates after it), its private key, and the
// authority's certificates from PEM files. The error is a *CredentialError.
func LoadTLS(certificate, key, authority string) (*TLS, error) {
	var text [3][]byte
	for i, file := range []struct{ what, path string }{{"certificate", certificate}, {"key", key},
		{"authority", authority}} {
		var err error
		if text[i], err = os.ReadFile(file.path); err != nil {
			return nil, &CredentialError{What: file.what, Path: file.path, Err: err}
		}
	}
	if _, err := parseCertificates(text[0]); err != nil {
		return nil, &CredentialError{What: "certificate", Path: certificate, Err: err}
	}
	pair, err := tls.X509KeyPair(text[0], text[1])
	if err != nil {
		return nil, &CredentialError{What: "key", Path: key,
			Err: fmt.Errorf("with the certificate %s: %w", certificate, err)}
	}
	signers, err := parseCertificates(text[2])
	if err != nil {
		return nil, &CredentialError{What: "authority", Path: authority, Err: err}
	}
	pool := x509.NewCertPool()
	for _, signer := range signers {
		pool.AddCert(signer)
	}
	return &TLS{Certificate: pair, Authority: pool}, nil
}

// parseCertificates parses one or more PEM certificates. It fails if text contains no certificate, or one that cannot
// be parsed.
func parseCertificates(text []byte) (list []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue // the file may hold a key as well
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it: %w", len(list)+1, err)
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("it contains no PEM block CERTIFICATE")
	}
	return list, nil
}

// Check returns the error that peers would report if a rank at ip presented this certificate.
func (t *TLS) Check(ip netip.Addr) error {
	fail := func(err error) error { return &CredentialError{What: "certificate", Err: err} }
	if len(t.Certificate.Certificate) == 0 || t.Authority == nil {
		return fail(errors.New("TLS needs a certificate and an authority"))
	}
	chain, err := x509.ParseCertificates(bytes.Join(t.Certificate.Certificate, nil))
	if err != nil {
		return fail(err)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: t.Authority, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return fail(err)
		}
	}
	if err := chain[0].VerifyHostname(hostOf(ip)); err != nil {
		return fail(err)
	}
	return nil
}

// peerConfig returns the TLS configuration for connections with a peer at ip. It serves both the dialing and
// the accepting side.
func (t *TLS) peerConfig(ip netip.Addr) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{t.Certificate},
		// Used by the side that dials.
		RootCAs:    t.Authority,
		ServerName: hostOf(ip),
		// Used by the side that accepts.
		ClientCAs:  t.Authority,
		ClientAuth: tls.RequireAndVerifyClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			return state.PeerCertificates[0].VerifyHostname(hostOf(ip))
		},
		// Every connection presents its certificates, so sessions are not resumed.
		SessionTicketsDisabled: true,
		// Small initial records only help browsers.
		DynamicRecordSizingDisabled: true,
	}
}

// hostOf returns the IP in the form used in certificates.
func hostOf(ip netip.Addr) string { return ip.Unmap().WithZone("").String() }
