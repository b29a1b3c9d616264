package configwatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestBaseline(t *testing.T) {
	for _, c := range []struct {
		name string
		Baseline
		want []told
	}{
		{"none", Baseline{}, nil},
		{"what is there", Baseline{ConfigHash: hashOf("v1"), BinaryHash: hashOf("b1")}, nil},
		{"an older config", Baseline{ConfigHash: hashOf("v0")}, []told{{100 * ms, Change{Config: true}}}},
		{"an older binary", Baseline{BinaryHash: hashOf("b0"), BinaryID: ID{Inode: 1}}, []told{{100 * ms, Change{Binary: true}}}},
		{"the same binary at another place", Baseline{BinaryHash: hashOf("b1"), BinaryID: ID{Inode: 1}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Options{Baseline: c.Baseline}, func(b *bench) {
				b.pass(time.Minute)
				b.wantTold(c.want...)
			})
		})
	}
}

func TestAnUnchangedBinaryIsNeverRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "binary")
		os.WriteFile(path, []byte("b1"), 0o700)
		fi, _ := os.Stat(path)
		b := newBinary(path, Baseline{BinaryHash: hashOf("b1"), BinaryID: IdentityOf(fi)})
		b.hash = func(context.Context, string) (string, error) { t.Error("it was hashed"); return "", nil }
		w := &watcher{Options: Options{Poll: time.Second, Settle: ms, Max: ms}, source: &bench{}, binary: b, targets: []*target{b}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.run(ctx)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing to watch":  {},
		"negative interval": {ConfigPath: "x", Poll: -1},
	} {
		if err := Watch(t.Context(), o, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
