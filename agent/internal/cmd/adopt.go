package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/hotrestart"
)

// adopted is a command line of Envoy's that stands in a manifest already: what
// follows "--" when its first word is no flag.
type adopted struct {
	program string
	line    envoy.CommandLine
}

// isAdopted tells Envoy's own command line from arguments for it.
func isAdopted(args []string) bool { return len(args) > 0 && !strings.HasPrefix(args[0], "-") }

// adopt reads it. Its first word is looked for as a shell would.
func (a app) adopt(args []string) (adopted, error) {
	line, err := envoy.ParseCommandLine(args[1:])
	if err != nil {
		return adopted{}, usageError("%w", err)
	}
	program, err := a.find(args[0])
	return adopted{program: program, line: line}, err
}

// into puts it where the supervisor's own flags would be. One that is given both
// ways has to say the same: neither is the obvious winner.
func (ad adopted) into(cfg *hotrestart.Config, f *pflag.FlagSet) error {
	cfg.ExtraArgs = append(cfg.ExtraArgs, ad.line.Args...)
	for _, err := range []error{
		take(f, "envoy-path", "the first word", &cfg.EnvoyPath, &ad.program),
		take(f, "config", "--config-path", &cfg.ConfigPath, given(ad.line.ConfigPath)),
		take(f, flagBaseID, "--base-id", &cfg.BaseID, ad.line.BaseID),
		take(f, flagDrainTime, "--drain-time-s", &cfg.DrainTime, ad.line.DrainTime),
		take(f, flagParentShutdown, "--parent-shutdown-time-s", &cfg.ParentShutdownTime, ad.line.ParentShutdownTime),
	} {
		if err != nil {
			return err
		}
	}
	if ad.line.ConfigYAML != "" && f.Changed("config") {
		return usageError("--config %s and --config-yaml of Envoy's command line are two bootstraps; keep one of them", cfg.ConfigPath)
	}
	return nil
}

func take[T comparable](f *pflag.FlagSet, flag, theirs string, ours, adopted *T) error {
	if adopted == nil {
		return nil
	}
	if f.Changed(flag) && *ours != *adopted {
		return usageError("--%s says %v, and %s of Envoy's command line %v; keep one of them", flag, *ours, theirs, *adopted)
	}
	*ours = *adopted
	return nil
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// inlineName is beside the control socket: pod-local, and ours to write to.
const inlineName = "bootstrap.yaml"

// place says where a bootstrap goes that was in the command line itself. What is
// validated, hashed and run is always a file.
func (ad adopted) place(cfg *hotrestart.Config) {
	if ad.line.ConfigYAML != "" {
		cfg.ConfigPath = filepath.Join(filepath.Dir(cfg.ControlSocket), inlineName)
	}
}

func (a app) writeInline(ad adopted, cfg hotrestart.Config) error {
	if ad.line.ConfigYAML == "" {
		return nil
	}
	if err := a.places.write(cfg.ConfigPath, []byte(ad.line.ConfigYAML)); err != nil {
		return fmt.Errorf("--config-yaml of Envoy's command line: %w", err)
	}
	return nil
}

// writePrivate writes a file that may have secrets in it, and makes its
// directory.
func writePrivate(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// find is a shell's look-up of a program (os/exec, which has it, forks on any
// thread and is forbidden here).
func (a app) find(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	path, ok := a.lookupEnv("PATH")
	if !ok || path == "" {
		path = defaultPath
	}
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, program)
		if fi, err := os.Stat(at); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", hotrestart.Exitf(hotrestart.ExitBinary, "%q is in none of PATH's directories (%s); give its path", program, path)
}
