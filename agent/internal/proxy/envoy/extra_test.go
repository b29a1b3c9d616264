package envoy

import (
	"slices"
	"strings"
	"testing"
)

func TestExtraTakesWhatEnvoyTakes(t *testing.T) {
	for line, concurrency := range map[string]int{
		"":        0,
		"-l warn": 0,
		"--log-level warn --cpuset-threads --service-node n": 0,
		"--stats-tag a:b --stats-tag c:d":                    0,
		"--concurrency 3":                                    3,
		"-l warn --concurrency 65535 --service-zone z":       65535,
		"--log-format -%v --service-cluster a=b":             0, // values may look like anything
		"--of-a-later-version":                               0,
		"--of-a-later-version value --cpuset-threads":        0,
		"--of-a-later-version --cpuset-threads --another x":  0,
		"--skip-hot-restart-parent-stats --enable-core-dump": 0,
	} {
		got, err := CheckExtra(strings.Fields(line))
		if err != nil || got.Concurrency != concurrency {
			t.Errorf("%q: %+v, %v", line, got, err)
		}
		want := strings.Fields(line)
		if i := slices.Index(want, "--concurrency"); i >= 0 {
			want = slices.Delete(want, i, i+2)
		}
		if !slices.Equal(got.Args, want) {
			t.Errorf("%q became %q", line, got.Args)
		}
	}
}

func TestExtraRefusesWithTheReason(t *testing.T) {
	for line, words := range map[string][]string{
		"--log-level=warn":                  {"two arguments", "--log-level warn"},
		"--new-flag=1":                      {"two arguments", "--new-flag 1"},
		"-l warn --log-level info":          {"--log-level", "twice"},
		"--cpuset-threads --cpuset-threads": {"twice"},
		"--new 1 --new 2":                   {"twice"},
		"warn":                              {`"warn"`, "without its flag"},
		"--cpuset-threads 4":                {`"4"`, "without its flag"},
		"-l warn info":                      {`"info"`, "without its flag"},
		"--log-level":                       {"value is missing"},
		"--log-level --cpuset-threads":      {"--log-level", "value is missing"},
		"--concurrency":                     {"value is missing"},
		"--concurrency 0":                   {"from 1"},
		"--concurrency two":                 {`"two"`, "from 1"},
		"--concurrency 2 --concurrency 2":   {"twice"},
		"--concurrency=2":                   {"two arguments"},
		"-c /x":                             {"--config-path", "own --config"},
		"--config-path /x":                  {"own --config"},
		"--config-yaml x":                   {"--config"},
		"--base-id 1":                       {"own --base-id"},
		"--base-id=1":                       {"own --base-id"},
		"--use-dynamic-base-id":             {"--base-id"},
		"--base-id-path /x":                 {"--base-id"},
		"--restart-epoch 1":                 {"counts"},
		"--drain-time-s 1":                  {"own --drain-time"},
		"--parent-shutdown-time-s 1":        {"own --parent-shutdown-time"},
		"--socket-path /x":                  {"--state-dir"},
		"--socket-mode 777":                 {"this user only"},
		"--mode validate":                   {"--validate"},
		"--disable-hot-restart":             {"what the supervisor is for"},
		"--skip-hot-restart-on-no-parent":   {"knows"},
		"-l warn -- --x":                    {"ignore"},
		"--ignore_rest":                     {"ignore"},
		"--version":                         {"exit"},
		"-h":                                {"--help", "exit"},
		"--hot-restart-version":             {"exit"},
	} {
		_, err := CheckExtra(strings.Fields(line))
		if err == nil {
			t.Errorf("%q was taken", line)
			continue
		}
		wantError(t, err, append(words, "envoy argument")...)
	}
	if _, err := CheckExtra([]string{""}); err == nil {
		t.Error("an empty argument was taken")
	}
}

func TestEveryFlagOfOursIsOneOfEnvoys(t *testing.T) {
	for flag := range ourFlags {
		if _, ok := envoyFlags[flag]; !ok {
			t.Errorf("%s: no such flag", flag)
		}
	}
	for _, flag := range shortFlags {
		if _, ok := envoyFlags[flag]; !ok {
			t.Errorf("%s: no such flag", flag)
		}
	}
	for flag := range loggingFlags {
		if _, ok := envoyFlags[flag]; !ok {
			t.Errorf("%s: no such flag", flag)
		}
	}
}

// Envoy takes a flag and its value as one argument, with a space: that must not
// carry one of ours past the check.
func TestExtraLooksIntoJoinedArguments(t *testing.T) {
	got, err := CheckExtra([]string{"--concurrency 3", "-l warn"})
	if err != nil || got.Concurrency != 3 || !slices.Equal(got.Args, []string{"-l", "warn"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := CheckExtra([]string{"--base-id 3"}); err == nil || !strings.Contains(err.Error(), "own --base-id") {
		t.Errorf("--base-id in one argument: %v", err)
	}
}
