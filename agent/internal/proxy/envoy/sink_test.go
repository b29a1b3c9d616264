package envoy

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A parent sends to the newcomer's name under its own path, which is a link.
func TestSinkTakesADeadNewcomersPlace(t *testing.T) {
	dir := shortDir(t)
	name, link := filepath.Join(dir, "child"), filepath.Join(dir, "link")
	parent := bind(t, filepath.Join(dir, "parent"))
	wantNil(t, os.Symlink(name, link))
	newcomer := bind(t, name)
	wantNil(t, newcomer.Close())
	if err := sendAnswer(parent, link); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("a dead newcomer's name: %v", err)
	}
	s, err := OpenSink(name)
	wantNil(t, err)
	for range 100 { // more than a queue holds
		wantNil(t, sendAnswer(parent, link))
	}
	again, err := OpenSink(name) // in another's place
	wantNil(t, err)
	s.conn.Close()
	wantNil(t, sendAnswer(parent, link))
	again.Close()
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// answer sends what comes with a listening socket: a descriptor.
func sendAnswer(parent *net.UnixConn, name string) error {
	_, _, err := parent.WriteMsgUnix(answerFor(StatsRequest, time.Time{}), syscall.UnixRights(0), unixgram(name))
	return err
}

func TestSinkNeedsADirectory(t *testing.T) {
	if _, err := OpenSink(filepath.Join(t.TempDir(), "none", "child")); err == nil {
		t.Error("no error")
	}
}
