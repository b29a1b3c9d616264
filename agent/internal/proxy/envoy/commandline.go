package envoy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CommandLine is how somebody has started Envoy until now, without the
// program's name: what a supervisor takes over, and what stays Envoy's.
type CommandLine struct {
	ConfigPath         string // "" where it isn't given
	ConfigYAML         string // the whole bootstrap, or "" where it isn't given
	BaseID             *uint32
	DrainTime          *time.Duration
	ParentShutdownTime *time.Duration
	Args               []string // the rest, for CheckExtra
}

// takenOver are the flags that a supervisor has a place for.
var takenOver = map[string]func(*CommandLine, string) error{
	"--config-path":            func(c *CommandLine, v string) error { c.ConfigPath = v; return nil },
	"--config-yaml":            func(c *CommandLine, v string) error { c.ConfigYAML = v; return nil },
	"--base-id":                (*CommandLine).takeBaseID,
	"--drain-time-s":           func(c *CommandLine, v string) error { return takeSeconds(&c.DrainTime, v) },
	"--parent-shutdown-time-s": func(c *CommandLine, v string) error { return takeSeconds(&c.ParentShutdownTime, v) },
	"--restart-epoch":          func(_ *CommandLine, v string) error { return onlyValue(v, "0", "the supervisor counts the epochs") },
	"--mode":                   func(_ *CommandLine, v string) error { return onlyValue(v, "serve", "the supervisor serves") },
}

// ParseCommandLine reads Envoy's arguments as they stand in a manifest. Flags
// that a supervisor can't take over, and mistakes, are left in Args, where
// CheckExtra says what to do about them.
func ParseCommandLine(args []string) (CommandLine, error) {
	var c CommandLine
	seen := map[string]bool{}
	for len(args) > 0 {
		args = apart(args)
		flag, n := canonical(args[0]), widthOf(args)
		take := takenOver[flag]
		switch {
		case take == nil:
			n = min(n, len(args))
			c.Args = append(c.Args, args[:n]...)
		case len(args) < n || isFlag(args[1]):
			return CommandLine{}, fmt.Errorf("envoy argument %q: its value is missing", args[0])
		case seen[flag]: // fact 12
			return CommandLine{}, fmt.Errorf("envoy argument %q is given twice, which Envoy does not accept", args[0])
		default:
			if err := take(&c, args[1]); err != nil {
				return CommandLine{}, fmt.Errorf("envoy argument %s %s: %w", args[0], args[1], err)
			}
		}
		seen[flag] = true
		args = args[n:]
	}
	if c.ConfigPath != "" && c.ConfigYAML != "" {
		return CommandLine{}, fmt.Errorf("envoy arguments --config-path %s and --config-yaml: what is validated has to be one file, "+
			"so put the second into the first", c.ConfigPath)
	}
	return c, nil
}

// apart makes two arguments of a flag and its value in one, with a space between
// them. Envoy accepts that (and no "="), and manifests are written so.
func apart(args []string) []string {
	flag, value, joined := strings.Cut(args[0], " ")
	if !joined || !isFlag(flag) {
		return args
	}
	return append([]string{flag, value}, args[1:]...)
}

func (c *CommandLine) takeBaseID(value string) error {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return fmt.Errorf("want a number")
	}
	id := uint32(n)
	c.BaseID = &id
	return nil
}

func takeSeconds(into **time.Duration, value string) error {
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return fmt.Errorf("want a number of seconds")
	}
	d := time.Duration(n) * time.Second
	*into = &d
	return nil
}

func onlyValue(value, want, why string) error {
	if value == want {
		return nil
	}
	return fmt.Errorf("%s, so it can only be %s here", why, want)
}
