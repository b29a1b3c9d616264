package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "web")
	var files []string
	for _, name := range []string{"values.yaml", "templates/a.yaml", "Chart.yaml"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var once, again bytes.Buffer
	if err := pack(&once, files); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	if err := pack(&again, files); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(once.Bytes(), again.Bytes()) {
		t.Error("the order of arguments changes the archive")
	}
	if got, want := list(t, &once), []string{"web/Chart.yaml", "web/templates/a.yaml", "web/values.yaml"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPackRefuses(t *testing.T) {
	for want, files := range map[string][]string{
		"no Chart.yaml": {"values.yaml"},
		"is not below":  {"a/Chart.yaml", "b/values.yaml"},
		"no such file":  {"missing/Chart.yaml"},
	} {
		if err := pack(io.Discard, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", files, err)
		}
	}
}

// list are the members, each of which contains its own path in the chart.
func list(t *testing.T, r io.Reader) []string {
	t.Helper()
	zip, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil || !strings.HasSuffix(header.Name, string(data)) || header.Mode != 0o644 || header.ModTime.Unix() != 0 {
			t.Errorf("%+v: %q, %v", header, data, err)
		}
		names = append(names, header.Name)
	}
}
