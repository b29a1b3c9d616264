package cmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/install"
)

const (
	flagInstall          = "install-path"
	flagInstallReadiness = "install-readiness-path"
	readinessProgram     = "proxy-ready" // beside this program in the agent's image
)

// installation is what an init container asks for: this program, and the probe
// that is beside it, on a volume that a container with Envoy shares.
type installation struct{ program, readiness string }

func (i *installation) bind(f *pflag.FlagSet) {
	f.StringVar(&i.program, flagInstall, "", "copy this program to `path`, and exit")
	f.StringVar(&i.readiness, flagInstallReadiness, "", "copy "+readinessProgram+", which is beside this program, to `path`, and exit")
}

func (i installation) wanted() bool { return i.program != "" || i.readiness != "" }

// do copies what is wanted. Nothing is copied unless every source is there: half
// an installation would start and fail at its first probe.
func (i installation) do(program string) error {
	var copies []copying
	for _, c := range []copying{
		{flagInstall, program, i.program},
		{flagInstallReadiness, filepath.Join(filepath.Dir(program), readinessProgram), i.readiness},
	} {
		if c.to == "" {
			continue
		}
		if err := install.Check(c.from); err != nil {
			return fmt.Errorf("--%s: %w; is this the agent's image?", c.flag, err)
		}
		copies = append(copies, c)
	}
	for _, c := range copies {
		if err := install.Copy(c.from, c.to); err != nil {
			return fmt.Errorf("--%s: %w", c.flag, err)
		}
	}
	return nil
}

type copying struct{ flag, from, to string }
