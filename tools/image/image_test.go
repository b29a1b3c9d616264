package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// example is an image of one program, and where its parts are.
func example(t *testing.T, platform string) spec {
	t.Helper()
	dir := t.TempDir()
	program, component := filepath.Join(dir, "program"), filepath.Join(dir, "component.json")
	for file, text := range map[string]string{
		program: "the program", component: `{"name":"libc6","version":"2.36","purl":"pkg:deb/debian/libc6@2.36"}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return spec{
		Tag: "a/b:1", Platform: platform, User: "65532:65532", Entrypoint: []string{"/bin/p", "run"},
		Env: map[string]string{"B": "2", "A": "1"}, Labels: map[string]string{"l": "v"},
		Layers: []layer{
			{Entries: []entry{{Path: "/var/run", Link: "/run", Mode: "0777"}, {Path: "/tmp", Mode: "0755", Owner: 65532}}},
			{Entries: []entry{{Path: "/bin/p", File: program, Mode: "0755"}}, Components: []string{component}},
		},
	}
}

// build runs the command and returns the directory of its outputs.
func build(t *testing.T, s spec) string {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "spec"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"build", "-spec", dir + "/spec", "-layout", dir + "/layout", "-tarball", dir + "/tar",
		"-digest", dir + "/digest", "-sbom", dir + "/sbom"})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnImageIsWhatWasAskedFor(t *testing.T) {
	dir := build(t, example(t, "linux/arm64"))
	img, err := tarball.ImageFromPath(dir+"/tar", nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(config.OS, config.Architecture, config.Created.Unix(), config.Config.User, config.Config.Entrypoint, config.Config.Env, config.Config.Labels)
	if want := "linux arm64 0 65532:65532 [/bin/p run] [A=1 B=2] map[l:v]\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	files := listing(t, img)
	if want := "tmp/ 755 65532,var/ 755 0,var/run 777 0 -> /run,bin/ 755 0,bin/p 755 0 the program"; files != want {
		t.Errorf("%s\nwant %s", files, want)
	}
	fromLayout, err := readImage(dir + "/layout")
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(fromLayout); err != nil {
		t.Error(err)
	}
	digest, _ := fromLayout.Digest()
	if said, _ := os.ReadFile(dir + "/digest"); strings.TrimSpace(string(said)) != digest.String() {
		t.Errorf("digest %s, written %s", digest, said)
	}
}

// listing has each layer's entries: name, mode, owner, and content or link.
func listing(t *testing.T, img v1.Image) string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(content); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s %o %d", h.Name, h.Mode, h.Uid)
			if h.Linkname != "" {
				line += " -> " + h.Linkname
			}
			if data, _ := io.ReadAll(r); len(data) > 0 {
				line += " " + string(data)
			}
			if h.ModTime.Unix() != 0 {
				t.Errorf("%s has a time", h.Name)
			}
			all = append(all, line)
		}
		content.Close()
	}
	return strings.Join(all, ",")
}

func TestEqualInputsGiveEqualBytes(t *testing.T) {
	one := example(t, "linux/amd64")
	other := example(t, "linux/amd64") // the same content, at other paths and times
	slices.Reverse(other.Layers[0].Entries)
	a, b := build(t, one), build(t, other)
	for _, file := range []string{"tar", "digest", "sbom", "layout/index.json"} {
		x, err := os.ReadFile(filepath.Join(a, file))
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := os.ReadFile(filepath.Join(b, file)); string(x) != string(y) {
			t.Errorf("%s differs", file)
		}
	}
}

func TestStampsFillLabels(t *testing.T) {
	status := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(status, []byte("STABLE_COMMIT abc\nSTABLE_EMPTY \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := spec{Labels: map[string]string{"a": "{STABLE_COMMIT}", "b": "{STABLE_EMPTY}", "c": "{NONE}", "d": "as it is"}, Stamps: []string{status}}
	if err := s.stamp(); err != nil || fmt.Sprint(s.Labels) != "map[a:abc d:as it is]" {
		t.Error(s.Labels, err)
	}
}

func TestWhatCantBeIsRefused(t *testing.T) {
	for want, entries := range map[string][]entry{
		"not a clean absolute path": {{Path: "bin/p", Mode: "0755"}},
		"not octal":                 {{Path: "/p", Mode: "rwx"}},
		"there twice":               {{Path: "/p", Mode: "0755"}, {Path: "/p", Mode: "0700"}},
		"no directory":              {{Path: "/p", File: os.DevNull, Mode: "0755"}, {Path: "/p/q", Mode: "0755"}},
		"both a file and a link":    {{Path: "/p", File: "x", Link: "y", Mode: "0755"}},
		"no such file":              {{Path: "/p", File: "/nonexistent", Mode: "0755"}},
	} {
		if _, err := (layer{Entries: entries}).build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
}

func TestTheBillListsModulesAndComponents(t *testing.T) {
	s := example(t, "linux/amd64")
	self, err := os.Executable() // a Go program with modules
	if err != nil {
		t.Fatal(err)
	}
	s.Layers[1].Entries = append(s.Layers[1].Entries, entry{Path: "/bin/self", File: self, Mode: "0755"})
	data, err := os.ReadFile(build(t, s) + "/sbom")
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(data, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
		t.Fatal(err, bill.BOMFormat)
	}
	names := map[string]string{}
	for _, c := range bill.Components {
		names[c.Name] = c.Version
	}
	if names["libc6"] != "2.36" || names["stdlib"] != strings.TrimPrefix(runtime.Version(), "go") || names["github.com/google/go-containerregistry"] == "" {
		t.Errorf("%v", names)
	}
}

// One name for several platforms, pushed to a registry and pulled again; through
// links, as Bazel has it.
func TestPush(t *testing.T) {
	dir := t.TempDir()
	args := []string{"index", "-layout", dir + "/index", "-digest", dir + "/digest"}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		args = append(args, links(t, build(t, example(t, platform))+"/layout"))
	}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/a/b:1"
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if err := run(t.Context(), []string{"push", links(t, dir+"/index"), to}); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 || manifest.Manifests[1].Platform.String() != "linux/arm64" {
		t.Errorf("%+v, %v", manifest, err)
	}
	said, _ := os.ReadFile(dir + "/digest")
	if digest, _ := index.Digest(); strings.TrimSpace(string(said)) != digest.String() {
		t.Errorf("pulled %s, built %s", digest, said)
	}
}

// links is a directory with a link to each file of another.
func links(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Symlink(path, filepath.Join(to, rel))
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestPushWantsARegistry(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"index", "-layout", dir + "/i", "-digest", dir + "/d", build(t, example(t, "linux/amd64")) + "/layout"}); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"aether/agent:1": "names no registry", "": "parse reference", "UPPER/x": "UPPER/x"} {
		if err := run(t.Context(), []string{"push", dir + "/i", to}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", to, err, want)
		}
	}
	if err := run(t.Context(), []string{"push", dir + "/i"}); err == nil || !strings.Contains(err.Error(), "where to?") {
		t.Error(err)
	}
}
