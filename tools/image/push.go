package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// runPush sends a layout's index, and the images in it, to each reference. It
// logs in as docker would (docker login, credential helpers).
func runPush(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("where to? Name one or more references: registry/repository:tag")
	}
	index, err := readIndex(args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	for _, to := range args[1:] {
		ref, err := name.ParseReference(to, name.WithDefaultRegistry("")) // none is meant unless named
		if err != nil {
			return err
		}
		if ref.Context().RegistryStr() == "" {
			return fmt.Errorf("%s names no registry: registry/repository:tag", to)
		}
		if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push to %s: %w", to, err)
		}
		fmt.Printf("%s@%s\n", ref.Context().Name(), digest)
	}
	return nil
}

// readIndex is the one index that writeIndex put into a layout.
func readIndex(dir string) (v1.ImageIndex, error) {
	top, err := openLayout(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if n := len(manifest.Manifests); n != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("%d entries, want one index", n)
	}
	return top.ImageIndex(manifest.Manifests[0].Digest)
}
