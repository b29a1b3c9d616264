package envoy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestValidateTellsRefusalFromAValidatorThatCanNotRun(t *testing.T) {
	var refusal *ValidationError
	for name, c := range map[string]struct {
		body    string
		refused bool
		words   []string
	}{
		"fine":            {"exit 0", false, nil},
		"refused":         {"echo '[2026-11-30 12:57:57.894][29][critical][main] [source/x.cc:76] no such field: foo' >&2; exit 1", true, []string{"no such field: foo"}},
		"killed":          {"kill -KILL $$", false, []string{"SIGKILL", "/c.yaml"}},
		"library missing": {"echo libc.so.7: not found >&2; exit 127", false, []string{"exit code 127", "libc.so.7"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := open(t, script(t, c.body)).Validate(t.Context(), "/c.yaml", nil)
			if len(c.words) == 0 {
				wantNil(t, err)
				return
			}
			wantError(t, err, c.words...)
			if errors.As(err, &refusal) != c.refused {
				t.Errorf("refusal: %v: %v", !c.refused, err)
			}
		})
	}
}

func TestValidateEndsWithItsContext(t *testing.T) {
	ctx, cancel := withTimeout(t, 50*time.Millisecond)
	defer cancel()
	err := open(t, script(t, "exec sleep 60")).Validate(ctx, "/c.yaml", nil)
	if !errors.Is(err, ctx.Err()) {
		t.Error(err)
	}
}

// The user's arguments decide what is valid; where the log goes isn't one of them.
func TestValidateGetsTheArgumentsThatMatter(t *testing.T) {
	b := open(t, script(t, `echo "$@" >&2; exit 1`))
	extra := []string{"--log-path", "/var/log/envoy", "--reject-unknown-dynamic-fields", "-l", "trace",
		"--service-node", "n", "--log-format-escaped", "--new-flag", "x", "--admin-address-path", "/a"}
	err := b.Validate(t.Context(), "/c.yaml", slices.Clone(extra))
	const want = "--mode validate --config-path /c.yaml --log-level error --reject-unknown-dynamic-fields --service-node n --new-flag x"
	if err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
		t.Errorf("%v\nwant …%s", err, want)
	}
}

func TestTellingLines(t *testing.T) {
	const prefix = "[2026-11-30 12:57:57.894][29355][critical][main] [source/server/server.cc:76] "
	long := strings.Repeat("reason ", 200)
	for in, want := range map[string]string{
		"":                              "",
		"\n\n  \n":                      "",
		prefix + "port  busy\n":         "port busy",
		prefix + "a\n" + prefix + "b\n": "a\nb",
		prefix + "error `no such field` initializing\nno such field\n":                                                "error `no such field` initializing",
		"Unable to parse (bad): {\"admin\": {\"key\": \"secret\"}}\n":                                                 "Unable to parse (bad): …",
		"PARSE ERROR: Argument: --foo\n  no match\n\nBrief USAGE:\n  envoy":                                           "PARSE ERROR: Argument: --foo\nno match",
		prefix + "error in 'c.yaml': goo.gle/debugonly \nkey: \"secret\"\nroute {\n}\n: validation failed (x)\nbye\n": "error in 'c.yaml': validation failed (x)\nbye",
		"error: goo.gle/debugstr key: \"secret\"\n" + prefix + "next\n":                                               "error\nnext",
		strings.Repeat("key: \"secret\"\n", keptOutput/10) + ": validation failed\n":                                  ": validation failed",
		"\xff\xfe broken\n": "? broken",
		long:                cut(strings.TrimSpace(long), tellingLine),
	} {
		if got := telling([]byte(in)); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", in, got, want)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		many.WriteString(strings.Repeat(string(rune('a'+i%26)), i%300+1) + "\n")
	}
	if n := len(telling([]byte(many.String()))); n > tellingAll || n < tellingAll/2 {
		t.Errorf("%d bytes", n)
	}
}
