package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// spec is an image, as defs.bzl writes it.
type spec struct {
	Tag        string            `json:"tag"`      // name:tag after docker load
	Platform   string            `json:"platform"` // os/architecture
	User       string            `json:"user"`     // uid:gid
	Entrypoint []string          `json:"entrypoint"`
	Env        map[string]string `json:"env"`
	Labels     map[string]string `json:"labels"`
	Layers     []layer           `json:"layers"` // the lowest first
	// Stamps are files of lines "KEY VALUE": a label {KEY} becomes the value.
	Stamps []string `json:"stamps"`
}

// layer is a set of files, and what they are made of.
type layer struct {
	Entries []entry `json:"entries"`
	// Components are JSON files with one component each, for the bill of
	// materials; Go programs tell theirs themselves.
	Components []string `json:"components"`
}

// entry is a regular file, a symbolic link or a directory.
type entry struct {
	Path  string `json:"path"`            // in the image, absolute
	File  string `json:"file,omitempty"`  // where its content is
	Link  string `json:"link,omitempty"`  // what it links to
	Mode  string `json:"mode"`            // octal
	Owner int    `json:"owner,omitempty"` // uid and gid
}

func readSpec(name string) (spec, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return spec{}, err
	}
	var s spec
	if err := json.Unmarshal(data, &s); err != nil {
		return spec{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, s.stamp()
}

// stamp fills labels in that name a key of the stamp files. One that has no
// value is left out: without --stamp nothing of the machine gets in.
func (s *spec) stamp() error {
	values := map[string]string{}
	for _, name := range s.Stamps {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			values["{"+key+"}"] = value
		}
	}
	for label, value := range s.Labels {
		if !strings.HasPrefix(value, "{") {
			continue
		}
		if s.Labels[label] = values[value]; s.Labels[label] == "" {
			delete(s.Labels, label)
		}
	}
	return nil
}

func (s spec) platform() (os, arch string, err error) {
	os, arch, ok := strings.Cut(s.Platform, "/")
	if !ok || os == "" || arch == "" {
		return "", "", fmt.Errorf("platform %q is not os/architecture", s.Platform)
	}
	return os, arch, nil
}

// check refuses what tar would take and no reader expects.
func (e entry) check() error {
	switch {
	case !path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path || e.Path == "/":
		return fmt.Errorf("%q is not a clean absolute path", e.Path)
	case e.File != "" && e.Link != "":
		return fmt.Errorf("%s is both a file and a link", e.Path)
	}
	_, err := e.mode()
	return err
}

func (e entry) mode() (fs.FileMode, error) {
	mode, err := strconv.ParseUint(e.Mode, 8, 12)
	if err != nil {
		return 0, fmt.Errorf("%s: mode %q is not octal", e.Path, e.Mode)
	}
	return fs.FileMode(mode), nil
}
