package envoy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:9901", "[::1]:80", "unix:/x", "unix:@abstract", "localhost:0", ":1", "unix:", "a:65536", "[a]:1", "[fe80::1%eth0]:5", "unix::1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			if a != (Address{}) || !utf8.ValidString(err.Error()) {
				t.Errorf("%q: %+v, %v", s, a, err)
			}
			return
		}
		if a.Port < 0 || a.Port > 65535 || a.IsUnix() == (a.Host != "") {
			t.Errorf("%q: impossible %+v", s, a)
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q is %+v, which is written %q and read as %+v, %v", s, a, a, again, err)
		}
		if !a.covers(a) {
			t.Errorf("%q isn't itself", s)
		}
	})
}

func FuzzBootstrap(f *testing.F) {
	for _, seed := range []string{
		everyKind, `{"admin":{}}`, "a: &a [*a]", "- 1", "\xef\xbb\xbf{", "admin: !!null x",
		`{"dynamicResources":{"ldsConfig":{"apiConfigSource":{"apiType":"GRPC"},"initialFetchTimeout":"0s"}}}`,
		"dynamic_resources: {cds_config: {path: /x}, ads_config: {api_type: DELTA_GRPC}}",
		"static_resources: {listeners: [{name: &n x, address: {pipe: {path: *n}}}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours := bytes.Clone(data)
		before := allocated()
		b, err := ParseBootstrap(ours)
		checkAllocated(t, before, len(data))
		for i := range ours {
			ours[i] = 'x' // the result holds on to nothing of it
		}
		if err != nil {
			if !reflect.DeepEqual(b, Bootstrap{}) || strings.ContainsRune(err.Error(), '\n') && !bytes.ContainsRune(data, '\n') {
				t.Errorf("%v, and beside it %+v", err, b)
			}
			return
		}
		if again, err := ParseBootstrap(data); err != nil || !reflect.DeepEqual(again, b) {
			t.Errorf("read again: %+v, %v; before %+v", again, err, b)
		}
		checkBootstrap(t, b)
		sameAsYAML(t, data, b)
	})
}

// allocated is how many bytes this process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// checkAllocated: what reading costs grows with what is read and not with what
// it could be made to mean. A YAML node is 200 bytes of memory for two of text,
// and the megabytes are for whatever else goes on in the process.
func checkAllocated(t *testing.T, before uint64, size int) {
	t.Helper()
	if cost := allocated() - before; cost > 8<<20+4<<10*uint64(size) {
		t.Errorf("%d bytes cost %d of memory", size, cost)
	}
}

func checkBootstrap(t *testing.T, b Bootstrap) {
	t.Helper()
	if b.WaitsForFirstFetch && !b.Dynamic {
		t.Errorf("nothing is dynamic, and is waited for: %+v", b)
	}
	if b.Admin != nil {
		checkListener(t, Listener{Address: *b.Admin, UDP: b.Admin.UDP})
	}
	for _, l := range b.Listeners {
		checkListener(t, l)
	}
	if slices.Contains(b.Clusters, "") {
		t.Errorf("a cluster without a name: %q", b.Clusters)
	}
	// What has all listeners lacks none, and what has none lacks them all.
	if missing := missingStatic(b.Listeners, b.Listeners); len(missing) > 0 {
		t.Errorf("listeners don't find themselves: %q", missing)
	}
	if missing := missingStatic(b.Listeners, nil); len(missing) != len(b.Listeners) {
		t.Errorf("%d listeners, %d missing", len(b.Listeners), len(missing))
	}
}

// sameAsYAML: JSON that is also YAML, plain of letters, says the same both ways.
func sameAsYAML(t *testing.T, data []byte, b Bootstrap) {
	t.Helper()
	data = bytes.TrimSpace(data)
	plain := !bytes.ContainsFunc(data, func(r rune) bool {
		return r > '~' || r < ' ' || r == '\\'
	})
	if !plain || !json.Valid(data) || repeatsKeys(data) {
		return
	}
	asYAML, err := ParseBootstrap(append([]byte("# not taken for JSON\n"), data...))
	if err == nil && !reflect.DeepEqual(asYAML, b) {
		t.Errorf("as YAML %+v, as JSON %+v", asYAML, b)
	}
}

// repeatsKeys is true where an object has fewer keys than were written.
func repeatsKeys(data []byte) bool {
	var value any
	if json.Unmarshal(data, &value) != nil {
		return true
	}
	written, err := json.Marshal(value)
	count := func(b []byte) int { return bytes.Count(b, []byte(`:`)) }
	return err != nil || count(written) != count(data)
}

func FuzzCheckExtra(f *testing.F) {
	for _, seed := range []string{
		"-l\nwarn", "--concurrency\n3\n-l\ninfo", "--service-node\n", "--new\nvalue\n--cpuset-threads", "--base-id\n1",
		"--log-level=warn", "--", "-", "--stats-tag\na:b\n--stats-tag\nc:d", "--new\n--concurrency\n2", "--log-format\n--restart-epoch=1", "-l\n-c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\n")
		extra, err := CheckExtra(slices.Clone(args))
		if err != nil {
			if !reflect.DeepEqual(extra, ExtraArgs{}) {
				t.Errorf("%v, and beside it %+v", err, extra)
			}
			return
		}
		if extra.Concurrency < 0 || extra.Concurrency > 65535 || len(args)-len(extra.Args) > 2 {
			t.Errorf("%q became %+v", args, extra)
		}
		if again, err := CheckExtra(slices.Clone(extra.Args)); err != nil || !slices.Equal(again.Args, extra.Args) || again.Concurrency != 0 {
			t.Errorf("checked again: %+v, %v; before %+v", again, err, extra)
		}
		checkLaunch(t, extra)
	})
}

// checkLaunch reads the command line as Envoy would: what is ours is there once,
// whatever was given.
func checkLaunch(t *testing.T, extra ExtraArgs) {
	t.Helper()
	count := map[string]int{}
	for args := (Launch{ConfigPath: "/c", SocketPath: "/s", Concurrency: 1, Extra: extra.Args}).Args(); len(args) > 0; {
		if !strings.HasPrefix(args[0], "-") {
			t.Errorf("%q: %q stands alone", extra.Args, args[0])
		}
		count[canonical(args[0])]++
		args = args[min(widthOf(args), len(args)):]
	}
	for flag, n := range count {
		if n > 1 && flag != "--stats-tag" {
			t.Errorf("%q: %s is there %d times", extra.Args, flag, n)
		}
	}
	for _, flag := range []string{"--concurrency", "--base-id", "--restart-epoch", "--config-path", "--socket-path"} {
		if count[flag] != 1 {
			t.Errorf("%q: %s is there %d times", extra.Args, flag, count[flag])
		}
	}
}

// What Envoy prints when it refuses is anything, secrets included.
func FuzzTelling(f *testing.F) {
	var long bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&long, "%d: %s\n", i, strings.Repeat(string(rune('a'+i%26)), 10*i))
	}
	for _, seed := range []string{
		"[2026-11-30 12:00:00.000][1][critical][main] [source/server/server.cc:449] error initializing config: no\n",
		"goo.gle/debugstr admin {\nsecret\n}\n: unknown field\n", "error: {\"private_key\": \"x\"}\n", "Brief USAGE:\n x\n", "\xff\xfe\n",
	} {
		f.Add([]byte(seed))
	}
	f.Add(long.Bytes())
	f.Fuzz(func(t *testing.T, stderr []byte) {
		text := telling(stderr)
		if len(text) > tellingAll || !utf8.ValidString(text) {
			t.Errorf("%d bytes, %.200q", len(text), text)
		}
		for line := range strings.Lines(text) {
			if len(line) > tellingLine+8 || strings.TrimSpace(line) == "" {
				t.Errorf("a line of %d bytes: %.200q", len(line), line)
			}
			if strings.Contains(line, `: {"`) || strings.Contains(line, debugMark) {
				t.Errorf("a dump is told: %q", line)
			}
		}
	})
}
