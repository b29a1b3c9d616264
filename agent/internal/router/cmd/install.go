package cmd

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/install"
)

const waiterProgram = "drain-wait" // beside this program in the router's image

// installCommand is for an init container: Envoy's image, whosoever it is, has
// no waiter.
func installCommand(executable func() (string, error)) *cobra.Command {
	return &cobra.Command{
		Use:     "install-waiter PATH",
		Short:   "Copy drain-wait, which is beside this program, to a volume",
		Example: "  atenet-router install-waiter /opt/atenet/drain-wait",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{fmt.Errorf("install-waiter: where to? One path, of the file")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := executable()
			if err != nil {
				return err
			}
			from := filepath.Join(filepath.Dir(program), waiterProgram)
			if err := install.Check(from); err != nil {
				return fmt.Errorf("install-waiter: %w; is this the router's image?", err)
			}
			return install.Copy(from, args[0])
		},
	}
}
