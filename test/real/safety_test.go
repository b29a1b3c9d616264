package real

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Who can open these can end Envoy or take its listening sockets (fact 1).
func TestWhatWeMakeIsForUsAlone(t *testing.T) {
	s := newStage(t)
	umask := syscall.Umask(0) // the supervisor inherits the most careless one
	s.launch()
	syscall.Umask(umask)
	s.await("epoch 0 to serve", node.Serves(0))
	held := s.stream() // keeps two generations, a relay between them
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))

	sockets, snapshots := 0, 0
	err := filepath.WalkDir(s.StateDir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			s.mode(path, mode, 0o700)
		case mode&fs.ModeSocket != 0:
			sockets++
			s.mode(path, mode, 0o600)
		case mode.IsRegular() && strings.HasPrefix(e.Name(), "bootstrap."):
			snapshots++
			s.mode(path, mode, 0o600)
		case mode.IsRegular() && mode&0o022 != 0:
			s.Errorf("%s: mode %v lets others write", path, mode)
		}
		return nil
	})
	if err != nil || sockets < 5 || snapshots < 2 {
		s.Errorf("%d sockets and %d snapshots in the state directory (%v)", sockets, snapshots, err)
	}
	for _, path := range append(s.seatFiles(), s.Control, s.Control+".lock") {
		if info, err := os.Lstat(path); err != nil {
			s.Error(err)
		} else {
			s.mode(path, info.Mode(), 0o600)
		}
	}
	held.conn.Close()
	s.stop()
	s.nothingLeft()
}

func (s *stage) mode(path string, got, want fs.FileMode) {
	s.Helper()
	if got.Perm() != want {
		s.Errorf("%s: mode %04o, want %04o", path, got.Perm(), want)
	}
}

// Envoy's abstract sockets would be everybody's in the network namespace.
func TestFact1NoAbstractSocket(t *testing.T) {
	s := newStage(t)
	s.start()
	for _, line := range s.boundSockets() {
		if strings.Contains(line, "envoy_domain_socket") {
			s.Error(line)
		}
	}
	s.stop()
}

// A browser, a link or a probe may GET anything: looking never acts.
func TestAGetNeverActs(t *testing.T) {
	s := newStage(t)
	s.start()
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, "/v1/reload", "", http.StatusMethodNotAllowed},
		{http.MethodHead, "/v1/reload", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/v1/status", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/v1/nothing", "", http.StatusNotFound},
		{http.MethodPost, "/v1/reload", `{"hurry": true}`, http.StatusBadRequest},
		{http.MethodPost, "/v1/reload", `{"force": ` + strings.Repeat(" ", 5000) + `true}`, http.StatusRequestEntityTooLarge},
	} {
		if got := s.call(c.method, c.path, c.body); got != c.want {
			s.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	s.stays(300*time.Millisecond, "nothing has happened", func(st node.Status) bool { return st.Serving == 0 && len(st.Epochs) == 1 })
	if got := s.call(http.MethodPost, "/v1/reload", ""); got != http.StatusAccepted {
		s.Errorf("a real reload: %d", got)
	}
	s.await("epoch 1 to serve", node.Serves(1))
	s.stop()
}

// call asks the control socket and returns the answer's status.
func (s *stage) call(method, path, body string) int {
	s.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.Control)
		},
	}}
	req, err := http.NewRequestWithContext(s.ctx, method, "http://supervisor"+path, strings.NewReader(body))
	s.must(err)
	resp, err := client.Do(req)
	s.must(err)
	resp.Body.Close()
	return resp.StatusCode
}

// Secrets come by the environment, and logs go to strangers: whatever happens,
// no value of it is in the log, the status or an answer.
func TestNoEnvironmentInLogs(t *testing.T) {
	const secret = "s3cr3t-of-the-environment"
	t.Setenv("MY_TOKEN", secret)
	t.Setenv("AETHER_PASSWORD", secret) // looks like ours
	s := newStage(t)
	s.start("--log-level", "debug", "--verify-command", s.script("verify", "exit 0"))
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.must(s.WriteRaw([]byte("admin: {nonsense: 1}\n")))
	code, out := s.proxyctl("reload", "--wait")
	if code != 1 {
		s.Errorf("exit code %d", code)
	}
	_, table := s.proxyctl("status")
	_, status := s.proxyctl("status", "-o", "json")
	st := s.await("epoch 1 to be alone, so that nothing brings it back", node.Alone(1))
	s.kill(st.Of(1).PID, syscall.SIGABRT)
	s.exit(128 + int(syscall.SIGABRT))
	for name, text := range map[string]string{"the log": s.run.Log(), "the answer": out, "the table": table, "the status": status} {
		if text == "" || strings.Contains(text, secret) {
			s.Errorf("%s (%d bytes) has a value of the environment", name, len(text))
		}
	}
	s.nothingLeft()
}

// A refused bootstrap may hold a secret, and Envoy repeats the configuration
// around its reason.
func TestNoSecretOfARefusedBootstrapInLogs(t *testing.T) {
	const secret = "s3cr3t-of-the-bootstrap"
	s := newStage(t)
	s.start()
	for _, c := range []struct{ flaw, reason string }{
		{"no_such_field: 1", "no_such_field"},
		{"max_request_headers_kb: 0", "MaxRequestHeadersKb"}, // against the field's rules
		{"codec_type: SOME", "SOME"},
	} {
		with := "server_name: " + secret + "\n          " + c.flaw
		s.must(s.WriteRaw([]byte(strings.Replace(string(s.yaml()), "codec_type: AUTO", with, 1))))
		code, out := s.proxyctl("reload", "--wait")
		if code != 1 || !strings.Contains(out, c.reason) {
			s.Errorf("%s: exit code %d: %s", c.flaw, code, out)
		}
		if strings.Contains(out, secret) || strings.Contains(s.run.Log(), secret) {
			s.Errorf("%s: the bootstrap's secret is told: %s", c.flaw, out)
		}
	}
	s.stop()
}
