package bootstrap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate is a server's, signed by a CA made for it alone.
type Certificate struct {
	CertPath, KeyPath string
	CAPath            string         // for clients that want a file
	Pool              *x509.CertPool // for those that don't
}

// NewCertificate makes a CA and a certificate for loopback, and writes
// server.crt, server.key and ca.crt (all 0600) into dir.
func NewCertificate(dir string) (Certificate, error) {
	pair, err := issue(time.Now())
	if err != nil {
		return Certificate{}, fmt.Errorf("test certificate: %w", err)
	}
	c := Certificate{
		CertPath: filepath.Join(dir, "server.crt"), KeyPath: filepath.Join(dir, "server.key"),
		CAPath: filepath.Join(dir, "ca.crt"), Pool: x509.NewCertPool(),
	}
	c.Pool.AddCert(pair.ca)
	if err := writePEM(c.CAPath, "CERTIFICATE", pair.ca.Raw); err != nil {
		return c, err
	}
	if err := writePEM(c.CertPath, "CERTIFICATE", pair.server); err != nil {
		return c, err
	}
	return c, writePEM(c.KeyPath, "PRIVATE KEY", pair.key)
}

type issued struct {
	ca          *x509.Certificate
	server, key []byte // DER
}

func issue(now time.Time) (issued, error) {
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "aether load CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 1, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	// ECDSA: an RSA signature for each handshake would be most of the load.
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, err
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return issued{}, err
	}
	var out issued
	if out.ca, err = x509.ParseCertificate(caDER); err != nil {
		return issued{}, err
	}
	if out.server, err = x509.CreateCertificate(rand.Reader, server, out.ca, serverKey.Public(), caKey); err != nil {
		return issued{}, err
	}
	out.key, err = x509.MarshalPKCS8PrivateKey(serverKey)
	return out, err
}

func writePEM(path, block string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), 0o600)
}
