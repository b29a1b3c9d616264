package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shop is a chooser that has some Envoys.
func shop(has map[string]envoy) chooser {
	return chooser{
		path: func(_ context.Context, version string) (string, error) {
			if _, ok := has[version]; !ok {
				return "", errors.New("no python3 on PATH")
			}
			return version, nil
		},
		identify: func(_ context.Context, path string) (envoy, error) {
			e := has[path]
			if e.version == "" {
				return e, errors.New("exec format error")
			}
			return e, nil
		},
	}
}

func TestChoose(t *testing.T) {
	newer, old := envoy{"new", "1.40.0", "11.104"}, envoy{"old", older, "11.104"}
	for name, c := range map[string]struct {
		has     map[string]envoy
		upgrade string
		lacking string
		err     string
	}{
		"both":                  {has: map[string]envoy{"": newer, older: old}, upgrade: "1.39.3 → 1.40.0"},
		"none":                  {has: nil, err: "no python3 on PATH"},
		"only the default":      {has: map[string]envoy{"": newer}, upgrade: "1.40.0, another file", lacking: "is skipped, and a copy of Envoy 1.40.0 that is one byte longer takes its place: no python3 on PATH."},
		"ENVOY is the old one":  {has: map[string]envoy{"": old, older: old}, upgrade: "1.39.3, another file", lacking: "same version"},
		"they can't hand over":  {has: map[string]envoy{"": {"new", "1.41.0", "12.1"}, older: old}, upgrade: "1.41.0, another file", lacking: "1.39.3 speaks hot-restart version 11.104 and 1.41.0 speaks 12.1"},
		"the old one won't run": {has: map[string]envoy{"": newer, older: {}}, upgrade: "1.40.0, another file", lacking: "exec format error"},
		"the default won't run": {has: map[string]envoy{"": {}, older: old}, err: "exec format error"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := shop(c.has).choose(t.Context())
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || got.upgrade() != c.upgrade || !strings.Contains(got.lacking, c.lacking) || (got.lacking == "") != (c.lacking == "") {
				t.Errorf("%v, %q, %q", err, got.upgrade(), got.lacking)
			}
			if n := strings.Count(got.lacking, "\n"); n > 0 {
				t.Errorf("more than one line: %q", got.lacking)
			}
		})
	}
}

func TestChooseIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := shop(map[string]envoy{"": {"new", "1.40.0", "11.104"}}).choose(ctx); err == nil {
		t.Errorf("%+v: being interrupted isn't a reason to do without", got)
	}
}

func TestInstallOfTheSameVersionIsAnotherFile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	script := "#!/bin/sh\necho \"$0  version: 3b1f/9.9.9/Clean/RELEASE/BoringSSL\"\n"
	if err := os.WriteFile(from, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := identify(t.Context(), from)
	if err != nil || e.version != "9.9.9" {
		t.Fatalf("%+v, %v", e, err)
	}
	if err := same(e, "why").installNew(to); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(to); string(got) != script+"\n" {
		t.Errorf("%q", got)
	}
	if kept, _ := os.ReadFile(from); string(kept) != script {
		t.Errorf("the original is now %q", kept)
	}
	if again, err := identify(t.Context(), to); err != nil || again.version != e.version {
		t.Errorf("the copy says %+v, %v", again, err)
	}
}

func TestIdentifySaysWhatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := identify(t.Context(), path); err == nil || !strings.Contains(err.Error(), path+" --version: exit status 3") {
		t.Error(err)
	}
}
