package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// epoch is when everything in an image was made.
var epoch = time.Unix(0, 0).UTC()

func (l layer) build() (v1.Layer, error) {
	entries, err := l.whole()
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, e := range entries {
		if err := e.writeTo(w); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	// Compressed once, not again for each of layout, tarball and digests.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// whole adds the directories above the entries and sorts by path, so that each
// directory comes before what is in it.
func (l layer) whole() ([]entry, error) {
	all := map[string]entry{}
	for _, e := range l.Entries {
		if err := e.check(); err != nil {
			return nil, err
		}
		if _, twice := all[e.Path]; twice {
			return nil, fmt.Errorf("%s is there twice", e.Path)
		}
		all[e.Path] = e
	}
	for _, e := range l.Entries {
		for dir := path.Dir(e.Path); dir != "/"; dir = path.Dir(dir) {
			above, known := all[dir]
			if known && (above.File != "" || above.Link != "") {
				return nil, fmt.Errorf("%s is below %s, which is no directory", e.Path, dir)
			}
			if !known {
				all[dir] = entry{Path: dir, Mode: "0755"}
			}
		}
	}
	var sorted []entry
	for _, e := range all {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return sorted, nil
}

func (e entry) writeTo(w *tar.Writer) error {
	mode, err := e.mode()
	if err != nil {
		return err
	}
	h := &tar.Header{
		Name: strings.TrimPrefix(e.Path, "/"), Mode: int64(mode), Uid: e.Owner, Gid: e.Owner,
		ModTime: epoch, Format: tar.FormatUSTAR,
	}
	switch {
	case e.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		return w.WriteHeader(h)
	case e.File == "":
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return w.WriteHeader(h)
	}
	data, err := os.ReadFile(e.File)
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(data))
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
