package cmd

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a script that completes commands and flags in a shell",
		Example:   "  source <(agent completion bash)\n  agent completion zsh >\"${fpath[1]}/_agent\"\n  agent completion fish >~/.config/fish/completions/agent.fish",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("which shell? There are bash, zsh and fish")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return c.Root().GenZshCompletion(a.stdout)
			case "fish":
				return c.Root().GenFishCompletion(a.stdout, true)
			}
			return usageError("%q is no shell that is known; there are bash, zsh and fish", args[0])
		},
	}
}

// completeChoices has shells offer the words of flags that take one of a few.
func completeChoices(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if one, ok := f.Value.(*oneOf); ok {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(one.words, cobra.ShellCompDirectiveNoFileComp)) // only fails for a flag that isn't there
		}
	})
	for _, sub := range c.Commands() {
		completeChoices(sub)
	}
}
