package envoy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/process"
)

// probeWithin is how long --version and --hot-restart-version may take
// together; both take milliseconds.
const probeWithin = 5 * time.Second

// Binary is one Envoy executable, held open: it is run through the descriptor
// for validate, start and retry, so that a swap in between changes nothing
// (rule 3). It is not safe for concurrent use while Probe runs.
type Binary struct {
	Path string   // as given; argv[0]
	File *os.File // what is run, whatever Path names by now
	Hash string   // SHA-256 of the contents, in hexadecimal

	Version           string // as in "1.40.0"; set by Probe
	HotRestartVersion string // as in "11.104"; set by Probe

	id identity
}

// identity is what changes when a file's contents do. Hashing 100 MB for each
// handoff would cost more than the rest of it.
type identity struct {
	device, inode uint64
	size          int64
	mtime, ctime  syscall.Timespec
}

func identityOf(info fs.FileInfo) (identity, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}, true
}

// OpenBinary opens and hashes the executable at path. It must be a regular
// file, executable by us, and for this machine; scripts are taken too. It is
// not run yet.
func OpenBinary(path string) (*Binary, error) {
	// O_NONBLOCK: a FIFO in its place must not hang us.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("envoy binary: %w", err)
	}
	b := &Binary{Path: path, File: file}
	// A new hard link changes the ctime, and a copy may just be ending.
	for range 3 {
		if err = b.inspect(); !errors.Is(err, errChanging) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("envoy binary %s: %w", path, err)
	}
	return b, nil
}

// InheritBinary is a binary that another program of this process has opened,
// hashed and probed.
func InheritBinary(file *os.File, hash, version, hotRestart string) (*Binary, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	id, _ := identityOf(info)
	return &Binary{Path: file.Name(), File: file, Hash: hash, Version: version, HotRestartVersion: hotRestart, id: id}, nil
}

// Close lets go of the executable. Processes that run it go on.
func (b *Binary) Close() error { return b.File.Close() }

// Same tells whether path still names the file that was opened, unchanged; a
// second OpenBinary, and its hash, can then be saved.
func (b *Binary) Same(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	id, ok := identityOf(info)
	return ok && id == b.id
}

func (b *Binary) inspect() error {
	info, err := b.File.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("is not a regular file but %s", KindOf(info.Mode()))
	}
	if err := unix.Access(fmt.Sprintf("/proc/self/fd/%d", b.File.Fd()), unix.X_OK); err != nil {
		return errors.New("is not executable for this user (mode, or a noexec mount)")
	}
	if err := checkMachine(b.File); err != nil {
		return err
	}
	b.id, _ = identityOf(info)
	if b.Hash, err = hashOf(b.File); err != nil {
		return err
	}
	if info, err = b.File.Stat(); err != nil {
		return err
	}
	if id, _ := identityOf(info); id != b.id {
		return errChanging
	}
	return nil
}

var errChanging = errors.New("changed while it was read: is it still being copied?")

func hashOf(file *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// KindOf says what sits where a regular file should be.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Probe asks the binary for its versions, once; later calls are free. One that
// hangs is killed after 5 s.
func (b *Binary) Probe(ctx context.Context) error {
	if b.HotRestartVersion != "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeWithin,
		fmt.Errorf("no answer within %v, killed: %w", probeWithin, context.DeadlineExceeded))
	defer cancel()
	line, err := b.ask(ctx, "--version")
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(line, "version: ")
	if release(version) == "" {
		return fmt.Errorf("envoy binary %s: --version printed %q: is this Envoy?", b.Path, line)
	}
	hot, err := b.ask(ctx, "--hot-restart-version")
	if err != nil {
		return err
	}
	b.Version, b.HotRestartVersion = release(version), hot
	return nil
}

// ask runs the binary with one flag and returns what it printed.
func (b *Binary) ask(ctx context.Context, flag string) (string, error) {
	out, stderr, status, err := process.Output(ctx, b.spec(flag), 4096)
	text := string(bytes.TrimSpace(out))
	if text == "" { // --hot-restart-version answers on stderr
		text = string(bytes.TrimSpace(stderr))
	}
	switch {
	case err != nil:
		err = fmt.Errorf("envoy binary %s: %s: %w", b.Path, flag, err)
	case status != process.Status{}:
		err = fmt.Errorf("envoy binary %s: %s ended with %v: %s", b.Path, flag, status, telling(stderr))
	case text == "":
		err = fmt.Errorf("envoy binary %s: %s printed nothing: is this Envoy?", b.Path, flag)
	}
	return text, err
}

// spec is a run beside the Envoy that serves. It may need as much memory, and
// must be the one to go (fact 26).
func (b *Binary) spec(args ...string) process.Spec {
	return process.Spec{Path: b.Path, Exe: b.File, Args: args, Expendable: true}
}
