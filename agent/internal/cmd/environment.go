package cmd

import (
	"strings"

	"github.com/spf13/pflag"
)

// envName is the variable of a flag.
func envName(flag string) string {
	return "AETHER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables; with
// names only those. An empty variable counts as not set, as manifests that
// leave one blank mean it.
func fromEnvironment(f *pflag.FlagSet, lookup func(string) (string, bool), names []string) error {
	var err error
	set := func(flag *pflag.Flag) {
		value, ok := lookup(envName(flag.Name))
		if err != nil || flag.Changed || flag.Name == "help" || !ok || value == "" {
			return
		}
		for _, v := range values(flag, value) {
			if e := flag.Value.Set(v); e != nil {
				err = usageError("%s: invalid value %q for --%s: %w", envName(flag.Name), v, flag.Name, e)
				return
			}
		}
		flag.Changed = true // explicit, as far as anybody else is concerned
	}
	if names == nil {
		f.VisitAll(set)
	}
	for _, name := range names {
		set(f.Lookup(name))
	}
	return err
}

// values are a repeatable flag's lines, else the value itself.
func values(flag *pflag.Flag, value string) []string {
	if flag.Value.Type() != "stringArray" {
		return []string{value}
	}
	var lines []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
