package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// component is a line of a bill of materials.
type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	SHA256  string `json:"sha256,omitempty"`
}

// writeBill writes the image's bill of materials: what its layers say they are
// made of, and the modules that its Go programs were linked from.
func (s spec) writeBill(file string) error {
	components, err := s.components()
	if err != nil {
		return err
	}
	name, version, _ := strings.Cut(s.Tag, ":")
	bom := cdx.NewBOM() // neither a serial number nor a time: equal inputs, equal bytes
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{Type: cdx.ComponentTypeContainer, Name: name, Version: version}}
	list := make([]cdx.Component, 0, len(components))
	for _, c := range components {
		list = append(list, c.cycloneDX())
	}
	bom.Components = &list
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

func (c component) cycloneDX() cdx.Component {
	out := cdx.Component{
		BOMRef: c.PURL, Type: cdx.ComponentTypeLibrary, Name: c.Name, Version: c.Version, PackageURL: c.PURL,
	}
	if c.SHA256 != "" {
		out.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: c.SHA256}}
	}
	return out
}

// components are sorted, each once.
func (s spec) components() ([]component, error) {
	var all []component
	for _, l := range s.Layers {
		for _, name := range l.Components {
			c, err := readComponent(name)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		for _, e := range l.Entries {
			if e.File != "" {
				all = append(all, modules(e.File)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.PURL, b.PURL) })
	return slices.Compact(all), nil
}

func readComponent(name string) (component, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return component{}, err
	}
	var c component
	if err := json.Unmarshal(data, &c); err != nil {
		return component{}, fmt.Errorf("%s: %w", name, err)
	}
	if c.Name == "" || c.Version == "" || c.PURL == "" {
		return component{}, fmt.Errorf("%s: a component needs name, version and purl", name)
	}
	return c, nil
}

// modules are those that a Go program says it was linked from, and the standard
// library. Other files have none.
func modules(file string) []component {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	found := []component{{Name: "stdlib", Version: goVersion, PURL: "pkg:golang/stdlib@" + goVersion}}
	for _, m := range info.Deps {
		found = append(found, component{Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version})
	}
	return found
}
