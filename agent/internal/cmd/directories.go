package cmd

import (
	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/coordination"
)

const flagOwner = "owner"

// directoriesCommand is for an init container, which has no shell: what pods of
// a node share is made the supervisor's own.
func (a app) directoriesCommand() *cobra.Command {
	var owner uint32
	c := &cobra.Command{
		Use:   "private-directories --owner UID DIRECTORY...",
		Short: "Make directories one user's and nobody else's, as root with CHOWN alone",
		Long: `Gives each directory to the user and sets its mode to 0700, and changes nothing
where that is so already. It is for an init container that runs as root without
any capability but CHOWN: the kubelet makes directories of the host root's. A
directory of a third user is refused, because that user's Envoy may be alive.`,
		Example: "  agent private-directories --owner 65532 /run/aether/hotrestart /dev/shm",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("which directories?")
			}
			return nil
		},
	}
	c.Flags().Uint32Var(&owner, flagOwner, 0, "`uid` that is to own them")
	c.RunE = func(c *cobra.Command, args []string) error {
		if owner == 0 {
			return usageError("--%s has to name the user that runs the supervisor, and not root", flagOwner)
		}
		for _, path := range args {
			if err := coordination.GiveDir(path, int(owner)); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}
