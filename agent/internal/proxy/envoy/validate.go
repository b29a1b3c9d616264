package envoy

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"aether.internal/agent/internal/proxy/process"
)

// ValidationError is Envoy's refusal of a bootstrap.
type ValidationError struct {
	Output string // the telling lines, at most 4 KiB
}

func (e *ValidationError) Error() string { return "Envoy refuses the bootstrap: " + e.Output }

// Validate runs --mode validate over the file at configPath, with those of the
// arguments in extra that could change the result. It returns a
// *ValidationError when Envoy refuses the file, and another error when the
// validator itself couldn't do its work (rule 3: that must not stop a first
// start).
//
// It touches neither segment nor sockets, takes about as long as a start, and
// sees neither a busy port nor half of the half-written files (fact 5). Only
// ctx limits its time.
func (b *Binary) Validate(ctx context.Context, configPath string, extra []string) error {
	args := append([]string{"--mode", "validate", "--config-path", configPath, "--log-level", "error"}, withoutLogging(extra)...)
	_, stderr, status, err := process.Output(ctx, b.spec(args...), keptOutput)
	switch {
	case err != nil:
		return fmt.Errorf("validate %s with %s: %w", configPath, b.Path, err)
	case status == process.Status{}:
		return nil
	case status.Signal == 0 && status.Code == 1:
		return &ValidationError{telling(stderr)}
	}
	// A crash, the OOM killer, a missing library: says nothing of the file.
	return fmt.Errorf("validate %s with %s: the validator ended with %v: %s", configPath, b.Path, status, telling(stderr))
}

// withoutLogging drops what would take the reason out of the captured output,
// or write beside the serving Envoy's files.
func withoutLogging(args []string) []string {
	var kept []string
	for len(args) > 0 {
		n := min(widthOf(args), len(args))
		if !loggingFlags[canonical(args[0])] {
			kept = append(kept, args[:n]...)
		}
		args = args[n:]
	}
	return kept
}

var loggingFlags = setOf("--log-path", "--log-level", "--component-log-level", "--log-format",
	"--log-format-escaped", "--log-stacktrace-single-entry", "--enable-fine-grain-logging",
	"--file-flush-interval-msec", "--file-flush-min-size-kb", "--admin-address-path", "--enable-core-dump")

const (
	keptOutput  = 64 << 10 // of what a validator prints, the end
	tellingLine = 600
	tellingAll  = 4 << 10
)

// logPrefix is "[2026-11-30 12:00:00.000][1][critical][main] [source/….cc:449] ".
var logPrefix = regexp.MustCompile(`^\[[^]]*\]\[\d+\]\[\w+\]\[\w+\] (\[[^]]*\] )?`)

// telling picks what a person needs of Envoy's stderr, at most 4 KiB. A reason
// that is printed twice (logged, then told) is kept once, and the usage that
// follows a bad argument not at all.
func telling(stderr []byte) string {
	var lines []string
	size := 0
	for line := range strings.Lines(withoutDumps(string(stderr))) {
		line = reason(line)
		if strings.HasPrefix(line, "Brief USAGE") {
			break
		}
		if line == "" || repeats(lines, line) || size+len(line) >= tellingAll {
			continue
		}
		lines = append(lines, line)
		size += len(line) + 1
	}
	return strings.Join(lines, "\n")
}

// debugMark begins a message of the configuration that Envoy repeats, secrets
// included, in the middle of a complaint. Protobuf varies how it goes on.
const debugMark = "goo.gle/debug"

// withoutDumps leaves such messages out. What is wrong with one follows it, on
// a line that begins with a colon.
func withoutDumps(text string) string {
	var kept strings.Builder
	inside := len(text) >= keptOutput && beginsInside(text)
	for line := range strings.Lines(text) {
		if inside && !strings.HasPrefix(line, ":") && !logPrefix.MatchString(line) {
			continue
		}
		before, _, dump := strings.Cut(line, debugMark)
		if dump {
			line = strings.TrimRight(before, ": ")
		} else if inside && line[0] != ':' {
			line = "\n" + line
		}
		inside = dump
		kept.WriteString(line)
	}
	return kept.String()
}

// beginsInside tells whether a text whose beginning is lost begins in a dump.
func beginsInside(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ":") || logPrefix.MatchString(line) {
			return line[0] == ':'
		}
	}
	return false
}

// reason is one line without its log prefix, and without the configuration that
// Envoy repeats after a reason, secrets included.
func reason(line string) string {
	line = logPrefix.ReplaceAllString(line, "")
	line, _, dump := strings.Cut(line, `: {"`)
	line = strings.ToValidUTF8(strings.Join(strings.Fields(line), " "), "?")
	if dump {
		line += ": …"
	}
	return cut(line, tellingLine)
}

func repeats(lines []string, line string) bool {
	head := cut(line, 100)
	for _, l := range lines {
		if strings.Contains(l, strings.TrimSuffix(head, "…")) {
			return true
		}
	}
	return false
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
