package upstream

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"aether.internal/test/load/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serving(t *testing.T, epoch string) *Server {
	t.Helper()
	s, err := StartAs(epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// client speaks HTTP/1.1, or HTTP/2 without TLS.
func client(t *testing.T, h2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetUnencryptedHTTP2(h2)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	s := serving(t, "v3")
	for _, c := range []struct {
		path, body string
		status     int
		pieces     int
		received   string
	}{
		{wire.HelloPath, "", 200, 1, ""},
		{wire.StreamPath + "?ms=0", "", 200, 1, ""},
		{wire.StreamPath + "?ms=250", "", 200, 3, ""},
		{wire.EchoPath, "some bytes", 200, 1, "10:"},
		{wire.StreamPath, "", 400, 0, ""},
		{wire.StreamPath + "?ms=-1", "", 400, 0, ""},
		{wire.StreamPath + "?ms=99999999999", "", 400, 0, ""},
		{"/nowhere", "", 404, 0, ""},
	} {
		for _, h2 := range []bool{false, true} {
			resp, err := client(t, h2).Post("http://"+s.HTTP+c.path, "text/plain", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			var got wire.Sum
			_, err = io.Copy(&got, resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != c.status || (resp.ProtoMajor == 2) != h2 || resp.Header.Get(wire.EpochHeader) != "v3" {
				t.Errorf("%s: %v, status %d, %s, %v", c.path, err, resp.StatusCode, resp.Proto, resp.Header)
			}
			if !strings.HasPrefix(resp.Header.Get(wire.ReceivedHeader), c.received) {
				t.Errorf("%s: received %q", c.path, resp.Header.Get(wire.ReceivedHeader))
			}
			if want, there := wire.Announced(resp.Header); there != (c.pieces > 0) || there && (want != got || got != wire.StreamSum(c.pieces)) {
				t.Errorf("%s: announced %v (%t), got %v", c.path, &want, there, &got)
			}
		}
	}
}

func TestTheEchoHonoursAHalfClose(t *testing.T) {
	t.Parallel()
	s := serving(t, "")
	c, err := net.Dial("tcp", s.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	sent := wire.Piece(5, 4096)
	_, _ = c.Write(sent[:1])
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		t.Fatal("no echo before the half-close:", err)
	}
	_, _ = c.Write(sent[1:])
	_ = c.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(append(first, rest...), sent) {
		t.Errorf("%v, %d bytes", err, 1+len(rest))
	}
}

// Close doesn't wait for streams, and goleak sees what it leaves.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	s := serving(t, "")
	raw, err := net.Dial("tcp", s.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for _, h2 := range []bool{false, true} {
		request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.HTTP+wire.StreamPath+"?ms=3600000", nil)
		resp, err := client(t, h2).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		defer func() {
			if _, err := io.Copy(io.Discard, resp.Body); err == nil {
				t.Error("a stream cut by Close looks whole")
			}
		}()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := raw.Read(make([]byte, 1)); err == nil {
		t.Error("the echo's connection is still open")
	}
	if c, err := net.Dial("tcp", s.HTTP); err == nil {
		_ = c.Close()
		t.Error("the port still accepts")
	}
}
