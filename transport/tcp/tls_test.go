package tcp

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestTransportWithTLS runs the transport tests with TLS.
func TestTransportWithTLS(t *testing.T) {
	a := newAuthority(t)
	transporttest.Run(t, transporttest.Kind{
		Listen: func(m *rankmap.Map, rank int) (mpe.Transport, error) {
			c, err := Listen(Config{Rank: rank, Map: m, Backoff: soon, TLS: a.issue(t, valid(m.Addr(rank).Addr()))})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		FromUnknown: func(t *testing.T, from netip.Addr, to netip.AddrPort) (netip.AddrPort, mpe.RxKind) {
			conn := dial(t, from, to)
			wantClosed(t, conn)
			return transportAddr(conn), mpe.RxBroken
		},
	})
}

func TestPacketsWithTLS(t *testing.T) {
	transporttest.RunPackets(t, packetKind(newAuthority(t), Listen))
}

func TestOwnCertificateIsChecked(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	m := transporttest.Map(t, 1)
	ip := m.Addr(0).Addr()
	unsigned := other.issue(t, valid(ip))
	unsigned.Authority = a.pool()
	noAuthority := a.issue(t, valid(ip))
	noAuthority.Authority = nil
	for name, tt := range map[string]struct {
		tls  *TLS
		text string
	}{
		"nothing":      {&TLS{}, "TLS needs a certificate and an authority"},
		"no authority": {noAuthority, "TLS needs a certificate and an authority"},
		"another IP": {a.issue(t, valid(netip.MustParseAddr("10.0.0.1"))),
			"not " + ip.String() + ": the certificate of this rank must contain the IP address of the rank map as a " +
				"subject alternative name"},
		"no IP":         {a.issue(t, valid()), "the certificate of this rank must contain"},
		"expired":       {a.issue(t, expired(ip)), "certificate has expired"},
		"unsigned":      {unsigned, "the certificate of this rank must be signed by the authority"},
		"for servers":   {a.issue(t, forServers(ip)), "must be for serverAuth and clientAuth"},
		"no DER inside": {&TLS{Certificate: broken(a.issue(t, valid(ip))).Certificate, Authority: a.pool()}, "x509: "},
	} {
		c, err := Listen(Config{Map: m, TLS: tt.tls})
		if err == nil {
			c.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		var credential *CredentialError
		if !errors.As(err, &credential) || !strings.Contains(err.Error(), "tcp: rank 0: tls: certificate: ") ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Several ranks may share a certificate that contains all their addresses.
	c, err := Listen(Config{Map: m, TLS: a.issue(t, valid(netip.MustParseAddr("10.0.0.1"), ip))})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// broken corrupts the certificate.
func broken(s *TLS) *TLS {
	s.Certificate.Certificate[0] = s.Certificate.Certificate[0][:20]
	return s
}

func TestLoadTLS(t *testing.T) {
	a := newAuthority(t)
	ip := netip.MustParseAddr("127.0.0.1")
	certificate, key, authority := a.writeFiles(t, a.issue(t, valid(ip)))
	loaded, err := LoadTLS(certificate, key, authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.Check(ip); err != nil {
		t.Errorf("the loaded credentials are rejected: %v", err)
	}
	_, otherKey, _ := a.writeFiles(t, a.issue(t, valid(ip)))
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := write("text.pem", "hello\n")
	corrupt := write("corrupt.pem", "-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n")
	for name, tt := range map[string]struct {
		certificate, key, authority string
		what, path, text            string
	}{
		"no certificate":      {text + "x", key, authority, "certificate", text + "x", "no such file"},
		"no key":              {certificate, text + "x", authority, "key", text + "x", "no such file"},
		"no authority":        {certificate, key, text + "x", "authority", text + "x", "no such file"},
		"text as certificate": {text, key, authority, "certificate", text, "it contains no PEM block CERTIFICATE"},
		"key as certificate":  {key, key, authority, "certificate", key, "it contains no PEM block CERTIFICATE"},
		"text as key":         {certificate, text, authority, "key", text, "with the certificate " + certificate},
		"another key": {certificate, otherKey, authority, "key", otherKey,
			"private key does not match public key"},
		"text as authority":    {certificate, key, text, "authority", text, "it contains no PEM block CERTIFICATE"},
		"corrupt certificate":  {corrupt, key, authority, "certificate", corrupt, "certificate 1 in it: x509"},
		"corrupt authority":    {certificate, key, corrupt, "authority", corrupt, "certificate 1 in it: x509"},
		"directory as the key": {certificate, t.TempDir(), authority, "key", "", "is a directory"},
	} {
		_, err := LoadTLS(tt.certificate, tt.key, tt.authority)
		var credential *CredentialError
		if !errors.As(err, &credential) || credential.What != tt.what || !strings.HasPrefix(credential.Path, tt.path) ||
			!strings.Contains(err.Error(), tt.text) || !strings.Contains(err.Error(), "tls: "+tt.what+" ") {
			t.Errorf("%s: %v", name, err)
		}
		if tt.text == "no such file" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v does not wrap the cause", name, err)
		}
	}
}

// TestIPv6Names checks that certificates contain the IP without brackets, zone or mapping.
func TestIPv6Names(t *testing.T) {
	a := newAuthority(t)
	for in, want := range map[string]string{"fe80::1%eth0": "fe80::1", "::ffff:10.0.0.1": "10.0.0.1",
		"fd00::1:2": "fd00:0:0:0::1:2"} {
		ip := netip.MustParseAddr(want)
		if err := a.issue(t, valid(ip)).Check(netip.MustParseAddr(in)); err != nil {
			t.Errorf("a certificate for %s is refused for a rank at %s: %v", want, in, err)
		}
		if err := a.issue(t, valid(ip.Next())).Check(netip.MustParseAddr(in)); !errors.As(err,
			new(x509.HostnameError)) {
			t.Errorf("a certificate for %v, for a rank at %s: %v", ip.Next(), in, err)
		}
	}
}

// TestTLSCarriesLongMessages sends a message of many records in each direction at the same time.
func TestTLSCarriesLongMessages(t *testing.T) {
	a := newAuthority(t)
	m := transporttest.Map(t, 2)
	var ends [2]*transporttest.End
	for rank := range ends {
		ends[rank] = start(t, Config{Rank: rank, Map: m, TLS: a.issue(t, valid(m.Addr(rank).Addr()))})
	}
	ends[0].WaitConnected(t, 1)
	ends[1].WaitConnected(t, 0)
	const words = 250_000
	sent := make(chan error, 2)
	for rank := range 2 {
		header := protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: uint32(rank), Dst: uint32(1 - rank), Size: words, Type: protocol.Data})
		payload := make([]byte, words*protocol.WordLen)
		for i := range payload {
			payload[i] = byte(i * 31)
		}
		go func() { sent <- ends[rank].SendData(1-rank, header, payload, protocol.CPUShape()) }()
	}
	for range 2 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	for rank, e := range ends {
		want(t, e, mpe.RxHeader, 1-rank)
		for got := 0; got < words*protocol.WordLen; {
			for _, b := range want(t, e, mpe.RxPayload, 1-rank).Bytes {
				if b != byte(got*31) {
					t.Fatalf("byte %d of rank %d's payload is %d", got, 1-rank, b)
				}
				got++
			}
		}
	}
}
