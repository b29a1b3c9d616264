package envoy

import (
	"strconv"
	"time"
)

// Launch is one invocation of Envoy.
type Launch struct {
	BaseID             uint32
	Epoch              int
	ConfigPath         string
	ConfigYAML         string // overlay merged over ConfigPath, "" for none
	SocketPath         string // prefix of the hot-restart sockets (fact 1)
	Concurrency        int    // 0: not passed
	DrainTime          time.Duration
	ParentShutdownTime time.Duration
	Extra              []string // as CheckExtra returned them
}

// Args is the command line without argv[0]. Flag and value are separate
// arguments: Envoy refuses --flag=value (fact 12). Durations are rounded up to
// whole seconds, the only unit Envoy knows.
func (l Launch) Args() []string {
	args := []string{
		"--config-path", l.ConfigPath,
		"--base-id", strconv.FormatUint(uint64(l.BaseID), 10),
		"--restart-epoch", strconv.Itoa(l.Epoch),
		"--drain-time-s", seconds(l.DrainTime),
		"--parent-shutdown-time-s", seconds(l.ParentShutdownTime),
	}
	if l.ConfigYAML != "" {
		args = append(args, "--config-yaml", l.ConfigYAML)
	}
	if l.SocketPath != "" {
		// Mode 600: anybody who can connect can take the listening sockets
		// and end Envoy (fact 1).
		args = append(args, "--socket-path", l.SocketPath, "--socket-mode", "600")
	}
	if l.Concurrency > 0 {
		args = append(args, "--concurrency", strconv.Itoa(l.Concurrency))
	}
	return append(args, l.Extra...)
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
