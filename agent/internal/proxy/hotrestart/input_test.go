package hotrestart

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aether.internal/agent/internal/proxy/envoy"
)

func TestReadBootstrapRefusesInOneSentence(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(path("dir.yaml"), 0o755))
	must(syscall.Mkfifo(path("fifo.yaml"), 0o644))
	must(os.WriteFile(path("huge.yaml"), nil, 0o644))
	must(os.Truncate(path("huge.yaml"), envoy.MaxBootstrap+1))
	must(os.WriteFile(path("a.txt"), []byte("x"), 0o644))
	must(os.Symlink("dangling", path("link.yaml")))
	for name, words := range map[string]string{
		"missing.yaml": "does not exist", "dir.yaml": "a directory", "fifo.yaml": "a FIFO",
		"huge.yaml": "too large", "a.txt": ".yaml, .yml or .json", "link.yaml": "does not exist",
	} {
		_, err := readBootstrap(path(name))
		if err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), path(name)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(os.WriteFile(path("good.yml"), []byte("admin: {}"), 0o600))
	if data, err := readBootstrap(path("good.yml")); string(data) != "admin: {}" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

func TestABootstrapWithoutAUsableAdminIsRefused(t *testing.T) {
	tcp := &envoy.Address{Host: "127.0.0.1", Port: 9901}
	for name, c := range map[string]struct {
		admin *envoy.Address
		flag  string
		words string // "" is fine
	}{
		"none":     {nil, "", "no admin address"},
		"port 0":   {&envoy.Address{Host: "127.0.0.1"}, "", "port is 0"},
		"fine":     {tcp, "", ""},
		"unix":     {&envoy.Address{Path: "/a.sock"}, "", ""},
		"agrees":   {tcp, "127.0.0.1:9901", ""},
		"mismatch": {tcp, "127.0.0.1:9902", "127.0.0.1:9902"},
		"no sense": {tcp, "nonsense", "--admin-address"},
	} {
		sh := &shell{Supervisor: &Supervisor{cfg: Config{AdminAddress: c.flag}}}
		err := sh.checkBootstrap(envoy.Bootstrap{Admin: c.admin})
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheWayOfAHandoff(t *testing.T) {
	known := &envoy.Binary{Path: "/e", Version: "1.40.0", HotRestartVersion: envoy.KnownHotRestartVersion}
	strange := &envoy.Binary{Path: "/f", Version: "2.0.0", HotRestartVersion: "12.0"}
	udp := envoy.Bootstrap{Listeners: []envoy.Listener{{UDP: true}}}
	silent := envoy.Bootstrap{Dynamic: true}
	patient := envoy.Bootstrap{Dynamic: true, WaitsForFirstFetch: true}
	dynamicUDP := &envoy.Resources{DynamicListeners: []envoy.Resource{{Listener: envoy.Listener{QUIC: true}}}}
	serving := func(b *envoy.Binary, boot envoy.Bootstrap) *input { return &input{binary: b, boot: boot} }
	for name, c := range map[string]struct {
		in      input
		serving *input
		known   *envoy.Resources
		noRelay bool
		mode    Mode
		words   string
	}{
		"relay":                    {in: input{binary: known}, mode: ModeRelay},
		"switched off":             {in: input{binary: known}, noRelay: true, mode: ModePlain},
		"unknown version":          {in: input{binary: strange}, mode: ModePlain},
		"UDP":                      {in: input{binary: known, boot: udp}, mode: ModeUDP},
		"the parent has UDP":       {in: input{binary: known}, serving: serving(known, udp), mode: ModeUDP},
		"the parent has QUIC, xDS": {in: input{binary: known}, serving: serving(known, silent), known: dynamicUDP, mode: ModeUDP},
		"versions differ":          {in: input{binary: strange}, serving: serving(known, udp), words: "restart the container"},
		"plain and silent":         {in: input{binary: strange, boot: silent}, serving: serving(strange, silent), words: "initial_fetch_timeout: 0s"},
		"plain, first start":       {in: input{binary: strange, boot: silent}, mode: ModePlain},
		"plain and patient":        {in: input{binary: strange, boot: patient}, serving: serving(strange, silent), mode: ModePlain},
	} {
		sh := &shell{Supervisor: &Supervisor{cfg: Config{NoRelay: c.noRelay}}}
		in := c.in
		r := sh.checkHandoff(&in, reading{serving: c.serving, known: c.known})
		switch {
		case c.words != "":
			if r == nil || !strings.Contains(r.Text, c.words) {
				t.Errorf("%s: %+v", name, r)
			}
		case r != nil || in.mode != c.mode:
			t.Errorf("%s: mode %v, %+v", name, in.mode, r)
		}
	}
}
