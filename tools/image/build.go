package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// outputs are the paths of what is made of one image.
type outputs struct{ layout, tarball, digest, sbom string }

func (o outputs) write(s spec) error {
	img, err := s.build()
	if err != nil {
		return err
	}
	tag, err := name.NewTag(s.Tag)
	if err != nil {
		return err
	}
	if err := writeLayout(o.layout, s.Tag, img); err != nil {
		return err
	}
	if err := tarball.WriteToFile(o.tarball, tag, img); err != nil {
		return err
	}
	if err := writeDigest(o.digest, img); err != nil {
		return err
	}
	return s.writeBill(o.sbom)
}

func (s spec) build() (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for i, l := range s.Layers {
		built, err := l.build()
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		img, err = mutate.Append(img, mutate.Addendum{
			Layer:   built,
			History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "tools/image"},
		})
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
	}
	return s.configure(img)
}

func (s spec) configure(img v1.Image) (v1.Image, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	if config.OS, config.Architecture, err = s.platform(); err != nil {
		return nil, err
	}
	config.Created = v1.Time{Time: epoch}
	config.Config.User = s.User
	config.Config.Entrypoint = s.Entrypoint
	config.Config.Labels = s.Labels
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		config.Config.Env = append(config.Config.Env, key+"="+s.Env[key])
	}
	return mutate.ConfigFile(img, config)
}

// writeLayout writes an OCI layout with this one image, under its name.
func writeLayout(dir, tag string, img v1.Image) error {
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return l.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
}

// writeIndex writes an OCI layout whose one entry is an index of the images in
// these layouts: what is pushed, and pulled for whatever platform.
func writeIndex(dir, digest string, layouts []string) error {
	index := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	for _, from := range layouts {
		img, err := readImage(from)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := l.AppendIndex(index); err != nil {
		return err
	}
	return writeDigest(digest, index)
}

func readImage(dir string) (v1.Image, error) {
	index, err := openLayout(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if n := len(manifest.Manifests); n != 1 || !match.MediaTypes(string(types.OCIManifestSchema1))(manifest.Manifests[0]) {
		return nil, fmt.Errorf("%d entries, want one image", n)
	}
	return index.Image(manifest.Manifests[0].Digest)
}

// openLayout follows links: Bazel's sandbox and runfiles are made of them, and
// the library refuses a blob that is one.
func openLayout(dir string) (v1.ImageIndex, error) {
	index, err := filepath.EvalSymlinks(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, err
	}
	return layout.ImageIndexFromPath(filepath.Dir(index))
}

func writeDigest(file string, of interface{ Digest() (v1.Hash, error) }) error {
	digest, err := of.Digest()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(digest.String()+"\n"), 0o644)
}
