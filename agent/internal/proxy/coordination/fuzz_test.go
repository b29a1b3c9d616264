package coordination

import (
	"os"
	"testing"
)

// A heartbeat is what WriteHeartbeat could have written, or it is absent.
func FuzzHeartbeat(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"epoch":5,"generation":1,"concurrency":2}`, `{"version":1,"epoch":1073741824,"pod":"a"}`, `{"version":2}`,
		`{"version":1,"epoch":-1}`, `{"VERSION":1,"Epoch":3,"epoch":4}`, `{"version":1,"pod":"\ud800"}`, `null`, ``, "\x00",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(heartbeatPath(dir), data, 0o600); err != nil {
			t.Fatal(err)
		}
		h, ok := ReadHeartbeat(dir)
		if !ok {
			if h != (Heartbeat{}) {
				t.Errorf("absent, and yet %+v", h)
			}
			return
		}
		if h.Version != HeartbeatVersion || !h.plausible() {
			t.Errorf("read %+v", h)
		}
		if err := WriteHeartbeat(dir, h); err != nil {
			t.Fatalf("read and not to be written: %v", err)
		}
		if again, ok := ReadHeartbeat(dir); !ok || again != h {
			t.Errorf("%+v became %+v, %v", h, again, ok)
		}
		wantNames(t, dir, "epoch")
	})
}
