package envoy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseCommandLine(t *testing.T) {
	id, drain, parent := uint32(7), 60*time.Second, 90*time.Second
	for _, c := range []struct {
		args string
		want CommandLine
	}{
		{"", CommandLine{}},
		{"-c /etc/envoy/envoy.yaml", CommandLine{ConfigPath: "/etc/envoy/envoy.yaml"}},
		{"--config-yaml admin:{}", CommandLine{ConfigYAML: "admin:{}"}},
		{"--config-path /c --base-id 7 --drain-time-s 60 --parent-shutdown-time-s 90 --restart-epoch 0 --mode serve",
			CommandLine{ConfigPath: "/c", BaseID: &id, DrainTime: &drain, ParentShutdownTime: &parent}},
		{"-l info -c /c --cpuset-threads --concurrency 2 --service-node n",
			CommandLine{ConfigPath: "/c", Args: strings.Fields("-l info --cpuset-threads --concurrency 2 --service-node n")}},
		{"--of-the-future x -c /c", CommandLine{ConfigPath: "/c", Args: strings.Fields("--of-the-future x")}},
		// CheckExtra has the words for these.
		{"-c /c --log-level", CommandLine{ConfigPath: "/c", Args: []string{"--log-level"}}},
		{"--disable-hot-restart -c /c", CommandLine{ConfigPath: "/c", Args: []string{"--disable-hot-restart"}}},
	} {
		got, err := ParseCommandLine(strings.Fields(c.args))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", c.args, got, err)
		}
	}
}

// Contour and Envoy Gateway write flag and value as one argument.
func TestParseCommandLineTakesFlagAndValueInOne(t *testing.T) {
	got, err := ParseCommandLine([]string{"--service-node a b", "--config-yaml admin: {}\nnode: {}", "--log-level info", "--log-format", "-l x", "--cpuset-threads"})
	want := CommandLine{
		ConfigYAML: "admin: {}\nnode: {}",
		Args:       []string{"--service-node", "a b", "--log-level", "info", "--log-format", "-l x", "--cpuset-threads"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseCommandLineRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"-c":                      `"-c": its value is missing`,
		"-c --base-id 3":          `"-c": its value is missing`,
		"-c /a --config-path /b":  `"--config-path" is given twice`,
		"-c /a --config-yaml {}":  "so put the second into the first",
		"--base-id x":             "--base-id x: want a number",
		"--base-id 4294967296":    "want a number",
		"--drain-time-s 1m":       "--drain-time-s 1m: want a number of seconds",
		"--restart-epoch 3 -c /a": "the supervisor counts the epochs, so it can only be 0 here",
		"--mode validate":         "it can only be serve here",
	} {
		if _, err := ParseCommandLine(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Whatever is taken over is a flag that Envoy has and that isn't the user's to
// give otherwise, and takes a value.
func TestTakenOverFlagsAreKnown(t *testing.T) {
	for flag := range takenOver {
		if _, ours := ourFlags[flag]; !ours || !envoyFlags[flag] {
			t.Errorf("%s: ours %v, takes a value %v", flag, ours, envoyFlags[flag])
		}
	}
}

func FuzzParseCommandLine(f *testing.F) {
	for _, seed := range []string{"-c /a", "--config-yaml {} -l", "--base-id 1 --base-id 1", "-- -c", "x -c /a", "--base-id"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		c, err := ParseCommandLine(args)
		if err != nil && !reflect.DeepEqual(c, CommandLine{}) {
			t.Errorf("%q: refused, and yet %+v", line, c)
		}
		for _, arg := range c.Args {
			if takenOver[canonical(arg)] != nil && !contains(args, arg) {
				t.Errorf("%q: %q comes from nowhere", line, arg)
			}
		}
	})
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
