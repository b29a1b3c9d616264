package envoy

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// answering is an Envoy's parent socket that answers each request with the
// given datagrams.
func answering(t *testing.T, reply string, datagrams ...[]byte) (parent string) {
	t.Helper()
	parent = filepath.Join(filepath.Dir(reply), "parent")
	conn, err := net.ListenUnixgram("unixgram", unixgram(parent))
	wantNil(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, _, err := conn.ReadFromUnix(buf)
			if err != nil {
				return
			}
			if ParseRequest(buf[:n]) != StatsRequest {
				t.Errorf("asked %x", buf[:n])
			}
			for _, d := range datagrams {
				if _, err := conn.WriteToUnix(d, unixgram(reply)); err != nil {
					t.Errorf("the answer found nobody: %v", err)
				}
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return parent
}

func TestAskStatsReadsTheWholeAnswer(t *testing.T) {
	const size = 10_000
	message := append(binary.BigEndian.AppendUint64(nil, size), make([]byte, size)...)
	var parts [][]byte
	for rest := message; len(rest) > 0; rest = rest[min(4096, len(rest)):] {
		parts = append(parts, rest[:min(4096, len(rest))])
	}
	reply := filepath.Join(t.TempDir(), "child")
	parent := answering(t, reply, parts...)
	for range 3 {
		wantNil(t, AskStats(t.Context(), parent, reply, 5*time.Second))
	}
	if _, err := os.Lstat(reply); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the name is left behind: %v", err)
	}
}

func TestAskStatsOfASilentOne(t *testing.T) {
	reply := filepath.Join(t.TempDir(), "child")
	wantError(t, AskStats(t.Context(), answering(t, reply), reply, 20*time.Millisecond), "no answer")
	wantError(t, AskStats(t.Context(), filepath.Join(t.TempDir(), "nobody"), reply, time.Second), "hot-restart socket")
	short := filepath.Join(t.TempDir(), "child")
	wantError(t, AskStats(t.Context(), answering(t, short, []byte("x")), short, time.Second), "1 bytes")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := filepath.Join(t.TempDir(), "child")
	wantError(t, AskStats(ctx, answering(t, ended), ended, time.Hour), "hot-restart socket")
}
