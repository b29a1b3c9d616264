package envoy

import (
	"strings"
	"testing"
	"time"
)

func TestLaunchArgs(t *testing.T) {
	for want, l := range map[string]Launch{
		"--config-path /c.yaml --base-id 3 --restart-epoch 0 --drain-time-s 25 --parent-shutdown-time-s 40": {
			BaseID: 3, ConfigPath: "/c.yaml", DrainTime: 25 * time.Second, ParentShutdownTime: 40 * time.Second},
		"--config-path /c.yaml --base-id 4294967295 --restart-epoch 12 --drain-time-s 2 --parent-shutdown-time-s 3 --config-yaml admin: {} " +
			"--socket-path /s/hr --socket-mode 600 --concurrency 4 -l warn --stats-tag a:b": {
			BaseID: 4294967295, Epoch: 12, ConfigPath: "/c.yaml", ConfigYAML: "admin: {}", SocketPath: "/s/hr", Concurrency: 4,
			DrainTime: 1001 * time.Millisecond, ParentShutdownTime: 3 * time.Second, Extra: []string{"-l", "warn", "--stats-tag", "a:b"}},
	} {
		if got := strings.Join(l.Args(), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Fact 12, for whatever is in a Launch.
func TestLaunchNeverJoinsFlagAndValue(t *testing.T) {
	for _, arg := range (Launch{ConfigPath: "/a=b", ConfigYAML: "a=b", SocketPath: "/x", Concurrency: 1}).Args() {
		if strings.HasPrefix(arg, "--") && strings.Contains(arg, "=") {
			t.Error(arg)
		}
	}
}
