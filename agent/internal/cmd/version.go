package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/envoy"
)

// Set by the linker: -X aether.internal/agent/internal/cmd.version=1.2.3
var version, commit string

// build is what "agent version" tells.
type build struct {
	Version    string   `json:"version"`
	Revision   string   `json:"revision,omitempty"`
	Modified   bool     `json:"modified,omitempty"` // built from a tree with changes
	Go         string   `json:"go"`
	Platform   string   `json:"platform"`
	HotRestart []string `json:"hot_restart"` // versions of Envoy's protocol that are known to work with the relay
}

func buildVersion() build {
	b := build{
		Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Revision: commit, HotRestart: []string{envoy.KnownHotRestartVersion},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.add(info)
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

func (b *build) add(info *debug.BuildInfo) {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = cmp.Or(b.Revision, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}

func (b build) String() string {
	s := "agent " + b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s + ", " + b.Go + ", " + b.Platform + ", Envoy hot restart " + strings.Join(b.HotRestart, ", ")
}

func (a app) versionCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := buildVersion()
			if output == "json" {
				return json.NewEncoder(a.stdout).Encode(b)
			}
			_, err := fmt.Fprintln(a.stdout, b)
			return err
		},
	}
	c.Flags().VarP(choice(&output, "text", "json"), "output", "o", "`format`: text or json")
	return c
}
