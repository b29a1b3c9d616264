package cmd

import (
	_ "embed"
	"fmt"
	"strconv"
	"text/template"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/envoy"
)

//go:embed bootstrap.yaml.tmpl
var source string

var page = template.Must(template.New("bootstrap").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(source))

// bootstrapCommand prints what Envoy needs to find the router. Everything else
// comes from there.
func bootstrapCommand(lookup func(string) (string, bool)) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print the bootstrap for the Envoy beside it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), lookup); err != nil {
				return usage{err}
			}
			var view struct{ Admin, XDS envoy.Address }
			var err error
			if view.Admin, err = envoy.ParseAddress(o.admin); err != nil {
				return usage{fmt.Errorf("--admin-address: %w", err)}
			}
			if view.XDS, err = envoy.ParseAddress(o.xds); err != nil {
				return usage{fmt.Errorf("--xds-address: %w", err)}
			}
			return page.Execute(c.OutOrStdout(), view)
		},
	}
	o.bindAddresses(c.Flags())
	return c
}
