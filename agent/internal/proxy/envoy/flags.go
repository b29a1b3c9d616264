package envoy

// envoyFlags are Envoy's flags, and whether each takes a value. A test
// compares this table with --help of the pinned versions.
var envoyFlags = map[string]bool{
	"--admin-address-path":            true,
	"--allow-unknown-fields":          false,
	"--allow-unknown-static-fields":   false,
	"--base-id":                       true,
	"--base-id-path":                  true,
	"--component-log-level":           true,
	"--concurrency":                   true,
	"--config-path":                   true,
	"--config-yaml":                   true,
	"--cpuset-threads":                false,
	"--disable-extensions":            true,
	"--disable-hot-restart":           false,
	"--drain-strategy":                true,
	"--drain-time-s":                  true,
	"--enable-core-dump":              false,
	"--enable-fine-grain-logging":     false,
	"--enable-mutex-tracing":          false,
	"--file-flush-interval-msec":      true,
	"--file-flush-min-size-kb":        true, // since 1.39
	"--help":                          false,
	"--hot-restart-version":           false,
	"--ignore-unknown-dynamic-fields": false,
	"--ignore_rest":                   false,
	"--local-address-ip-version":      true,
	"--log-format":                    true,
	"--log-format-escaped":            false,
	"--log-level":                     true,
	"--log-path":                      true,
	"--log-stacktrace-single-entry":   false, // since 1.39
	"--mode":                          true,
	"--parent-shutdown-time-s":        true,
	"--reject-unknown-dynamic-fields": false,
	"--restart-epoch":                 true,
	"--service-cluster":               true,
	"--service-node":                  true,
	"--service-zone":                  true,
	"--skip-deprecated-logs":          false,
	"--skip-hot-restart-on-no-parent": false,
	"--skip-hot-restart-parent-stats": false,
	"--socket-mode":                   true,
	"--socket-path":                   true,
	"--stats-tag":                     true, // the only one that may be repeated
	"--use-dynamic-base-id":           false,
	"--version":                       false,
}

var shortFlags = map[string]string{
	"-c": "--config-path",
	"-h": "--help",
	"-l": "--log-level",
	"--": "--ignore_rest",
}

const exits = "it makes Envoy print something and exit"

// ourFlags are the supervisor's business, with what to do instead.
var ourFlags = map[string]string{
	"--base-id":                       "use the supervisor's own --base-id",
	"--base-id-path":                  "the base id is the supervisor's own --base-id",
	"--config-path":                   "use the supervisor's own --config",
	"--config-yaml":                   "put it into the file named by --config",
	"--disable-hot-restart":           "hot restarts are what the supervisor is for",
	"--drain-time-s":                  "use the supervisor's own --drain-time",
	"--help":                          exits,
	"--hot-restart-version":           exits,
	"--ignore_rest":                   "Envoy would ignore every argument after it",
	"--mode":                          "the supervisor validates by itself, see its own --validate",
	"--parent-shutdown-time-s":        "use the supervisor's own --parent-shutdown-time",
	"--restart-epoch":                 "the supervisor counts the epochs",
	"--skip-hot-restart-on-no-parent": "the supervisor knows when there is no parent",
	"--socket-mode":                   "the sockets are for this user only",
	"--socket-path":                   "the sockets are in the supervisor's own --state-dir",
	"--use-dynamic-base-id":           "use the supervisor's own --base-id",
	"--version":                       exits,
}
