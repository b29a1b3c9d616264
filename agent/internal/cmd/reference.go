package cmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// flagTables renders the flags of every command as Markdown, for the section
// "flags" of docs/reference.md.
func flagTables(root *cobra.Command) string {
	var b strings.Builder
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasAvailableLocalFlags() && c.Runnable() && !c.HasSubCommands() {
			fmt.Fprintf(&b, "### `%s`\n\n| flag | variable | default | meaning |\n|---|---|---|---|\n", c.CommandPath())
			c.InheritedFlags().VisitAll(func(f *pflag.Flag) { flagRow(&b, f) })
			c.LocalFlags().VisitAll(func(f *pflag.Flag) { flagRow(&b, f) })
			b.WriteString("\n")
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return strings.TrimSuffix(b.String(), "\n")
}

func flagRow(b *strings.Builder, f *pflag.Flag) {
	if f.Name == "help" {
		return
	}
	name, usage := pflag.UnquoteUsage(f)
	flag := "--" + f.Name
	if f.Shorthand != "" {
		flag = "-" + f.Shorthand + ", " + flag
	}
	if name != "" {
		flag += " " + strings.ToUpper(name)
	}
	variable := ""
	if hasVariable(f) {
		variable = code(envName(f.Name))
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s |\n", code(flag), variable, code(defaultOf(f)), usage)
}

// defaultOf is a flag's default as people write it.
func defaultOf(f *pflag.Flag) string {
	switch {
	case f.DefValue == "[]":
		return ""
	case f.Value.Type() == "duration":
		return shortDuration(f.DefValue)
	}
	return f.DefValue
}

// shortDuration leaves out zeros: "2m0s" is 2m.
func shortDuration(s string) string {
	if short, ok := strings.CutSuffix(s, "m0s"); ok {
		s = short + "m"
	}
	if short, ok := strings.CutSuffix(s, "h0m"); ok {
		s = short + "h"
	}
	return s
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// metricsTable renders the instruments as Markdown, for docs/telemetry.md.
func metricsTable(instruments []hotrestart.Instrument) string {
	var b strings.Builder
	b.WriteString("| name | kind | unit | attribute | meaning |\n|---|---|---|---|---|\n")
	for _, in := range instruments {
		attribute := ""
		if in.Key != "" {
			attribute = code(in.Key) + ": " + strings.Join(in.Values, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(hotrestart.Prefix+in.Name), in.Kind, code(in.Unit), attribute, in.Meaning)
	}
	return b.String()
}

// exitTables renders the exit codes as Markdown, for the section "exit-codes".
func exitTables() string {
	return exitTable("agent proxy-supervisor", supervisorExits) + "\n" + exitTable("agent proxyctl", proxyctlExits)
}

func exitTable(command string, rows []exitCode) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### `%s`\n\n| code | meaning | what to do |\n|---|---|---|\n", command)
	for _, row := range rows {
		number := strconv.Itoa(row.code)
		if row.plus {
			number += " + *n*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", number, row.meaning, row.then)
	}
	return b.String()
}
