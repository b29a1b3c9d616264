package envoy

import (
	"regexp"
	"testing"

	"aether.internal/agent/internal/proxy/process"
)

// The table of flags against what each version says itself.
func TestFlagsAreThoseOfHelp(t *testing.T) {
	since139 := setOf("--file-flush-min-size-kb", "--log-stacktrace-single-entry")
	for _, version := range versions {
		b := realBinary(t, version)
		out, _, _, err := process.Output(t.Context(), b.spec("--help"), 1<<20)
		wantNil(t, err)
		got := map[string]bool{}
		for _, m := range helpFlag.FindAllStringSubmatch(string(out), -1) {
			got[m[1]] = m[2] != ""
		}
		for flag, takes := range envoyFlags {
			has, ok := got[flag]
			if older := version == "1.36.4" && since139[flag]; ok == older || has != takes && !older {
				t.Errorf("%s: %s: in --help %v, takes a value %v", version, flag, ok, has)
			}
			delete(got, flag)
		}
		for flag := range got {
			t.Errorf("%s: %s is not in the table", version, flag)
		}
	}
}

// "   -l <string>,  --log-level <string>", "   --cpuset-threads"
var helpFlag = regexp.MustCompile(`(?m)^   (?:-[^ ]* ?(?:<\w+>)?,  )?(--[\w-]+)( <\w+>)?(?:  \(accepted multiple times\))?$`)
