package containers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"aether.internal/test/containers/actor"
	"aether.internal/test/load"
	"aether.internal/test/xds"
)

const (
	clientURI  = "spiffe://aether.test/client"
	mutualPort = 10500
	nodeID     = "load" // of test/load/bootstrap
)

// plane is a control plane outside of the pods, at a Unix socket that they share.
func (n *node) plane(state xds.State) *xds.Server {
	n.Helper()
	n.bootstrap.XDS = shared + "/xds.sock"
	socket := filepath.Join(n.dir, "shared", "xds.sock")
	s := xds.New(socket)
	s.Set(state)
	n.must(s.Up())
	n.Cleanup(s.Close)
	n.must(os.Chmod(socket, 0o777)) // it is root's
	return s
}

// mutual is a listener that asks for certificates, with its cluster and secrets.
func (n *node) mutual() xds.State {
	n.Helper()
	up, err := n.actor.Addresses(n.Context())
	n.must(err)
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(n.dir, "shared", name))
		n.must(err)
		return data
	}
	return xds.State{Resources: map[string][]proto.Message{
		xds.Listeners: {xds.MutualTLS(xds.HTTPListener("mutual", mutualPort, "identity"))},
		xds.Clusters:  {xds.Cluster("identity", up.Identity)},
		xds.Secrets:   {xds.Certificate(read("server.crt"), read("server.key")), xds.Trust(read("clients.crt"))},
	}}
}

// issueClient writes a client's certificate, and the CA that it is from.
func (n *node) issueClient() {
	n.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	n.must(err)
	uri, err := url.Parse(clientURI)
	n.must(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 1, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, URIs: []*url.URL{uri},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for name, of := range map[string]*x509.Certificate{"clients.crt": ca, "client.crt": client} {
		der, err := x509.CreateCertificate(rand.Reader, of, ca, key.Public(), key) // one key will do for both
		n.must(err)
		n.pem(name, "CERTIFICATE", der)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	n.must(err)
	n.pem("client.key", "PRIVATE KEY", der)
}

func (n *node) pem(name, block string, der []byte) {
	n.Helper()
	path := filepath.Join(n.dir, "shared", name)
	n.must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), 0o644))
}

// Listeners, clusters and secrets come from a control plane that knows both pods'
// Envoys by one name, and the upstream hears who the client is throughout.
func TestMutualTLSFromTheControlPlaneHoldsAcrossPods(t *testing.T) {
	n := newNode(t)
	n.issueClient()
	control := n.plane(n.mutual())
	a, b := n.pod("a"), n.pod("b")
	a.serves(0)
	plan := load.Plan{Target: load.Target{HTTPS: "127.0.0.1:10500"}, StreamDuration: 500 * time.Millisecond}
	for _, kind := range []string{load.New, load.KeepAlive, load.H2, load.Stream, load.Upload, load.H2Stream} {
		plan.Kinds = append(plan.Kinds, load.KindPlan{Kind: kind, TLS: true, Rate: 10, Connections: 1})
	}
	n.load(actor.Load{Name: "mutual", Plan: plan.ForThisMachine(), Cert: shared + "/client.crt", Key: shared + "/client.key"})
	n.mixed(300 * time.Millisecond)
	n.hold("old", 1) // keeps the old pod's Envoy alive beside the new one's

	b.serves(1)
	a.await("the old pod to be superseded", state("superseded"))
	n.until("two Envoys of one node id at the control plane", func() bool { return control.Streams(nodeID) == 2 })
	before := n.named()
	n.until("the new pod's to name the client as well", func() bool { return n.named() > before+50 })
	n.letGo("old", 0)
	a.stop()
	n.until("one Envoy at the control plane", func() bool { return control.Streams(nodeID) == 1 })
	n.unharmed("mixed")
	if ok, named := n.unharmed("mutual").OK(), n.named(); named < ok {
		t.Errorf("the upstream was told the client's URI %d times in %d requests", named, ok)
	}
	n.refusesStrangers()
	b.stop()
}

// named counts the requests whose client the upstream was told, and fails for
// any other.
func (n *node) named() (count int) {
	n.Helper()
	seen, err := n.actor.Identities(n.Context())
	n.must(err)
	for header, requests := range seen {
		if !slices.Contains(strings.Split(header, ";"), "URI="+clientURI) {
			n.Errorf("%d requests with x-forwarded-client-cert %q: no URI=%s", requests, header, clientURI)
		}
		count += requests
	}
	return count
}

// refusesStrangers wants a client without a certificate to get nothing.
func (n *node) refusesStrangers() {
	n.Helper()
	n.must(n.actor.Load(n.Context(), actor.Load{Name: "stranger", CA: n.bootstrap.Certificate.CAPath, Plan: load.Plan{
		Target: load.Target{HTTPS: "127.0.0.1:10500"}, Kinds: []load.KindPlan{{Kind: load.New, TLS: true, Rate: 20}},
	}}))
	failed := func() bool {
		r, err := n.actor.Report(n.Context(), actor.Ask{Name: "stranger"})
		return err == nil && r.Failures() > 3
	}
	n.until("a client without a certificate to fail", failed)
	r, err := n.actor.Report(n.Context(), actor.Ask{Name: "stranger", Stop: true})
	n.must(err)
	if r.OK() > 0 {
		n.Errorf("a client without a certificate was answered %d times", r.OK())
	}
}
