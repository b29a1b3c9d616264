package configwatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxConfig limits how much of a config is read, in bytes. It is the most that
// a bootstrap may have: a larger one is a change by its first part, for the
// caller to refuse.
const maxConfig = 64<<20 + 1

// ID identifies a version of a file without reading it. Times are nanoseconds.
type ID struct {
	Device, Inode      uint64
	Size, Mtime, Ctime int64
}

// IdentityOf takes the identity out of a Stat of a path or an open file; zero
// where fi has none.
func IdentityOf(fi fs.FileInfo) ID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}
	}
	return ID{
		Device: uint64(st.Dev), Inode: st.Ino,
		Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
	}
}

// label is the identity as a tracker compares it; a zero one is nothing.
func (id ID) label() string {
	if id == (ID{}) {
		return ""
	}
	return fmt.Sprint(id)
}

// target is one watched file.
type target struct {
	what    string // for people
	path    string
	tracker tracker
	places  []place
	lost    bool // its absence was logged

	// look tells the content's label, cheaply enough for ten times a second.
	look func(ctx context.Context, path string) (string, error)
	// hash, where set, is the content itself for a look that shows less.
	hash func(ctx context.Context, path string) (string, error)
	// content is the hash of what was last reported.
	content string
}

// newConfig compares by content: it is small, and some file systems below a
// bind mount don't tell a change in their times.
func newConfig(path, hash string) *target {
	return &target{
		what: "config", path: path, look: hashConfig,
		tracker: tracker{reported: hash},
	}
}

// newBinary compares by identity, and hashes only what has a new one (rule 3):
// a look at 150 MB every ten seconds would be the supervisor's main expense.
func newBinary(path string, b Baseline) *target {
	return &target{
		what: "binary", path: path, look: identify, hash: hashFile,
		tracker: tracker{reported: b.BinaryID.label()}, content: b.BinaryHash,
	}
}

// known tells whether there is a baseline; without, the first look makes it.
func (t *target) known() bool { return t.tracker.reported != "" || t.content != "" }

// differs tells whether what the tracker settled on is other content. label is
// what the look showed; that the file still shows it is checked after reading.
func (t *target) differs(ctx context.Context, label string) (bool, error) {
	if t.hash == nil {
		return true, nil
	}
	content, err := t.hash(ctx, t.path)
	if err != nil {
		return false, err
	}
	if now, err := t.look(ctx, t.path); err != nil || now != label {
		return false, fmt.Errorf("%s changed while it was read", t.path)
	}
	differs := content != t.content
	t.content = content
	return differs, nil
}

// concerns tells whether something of this name in dir may change what the
// path names. Names decide, not directories: one directory mounted at two
// places has one watch, whose events bear the first one's path.
func (t *target) concerns(path string) bool {
	for _, p := range t.places {
		if p.name == filepath.Base(path) || p.dir == path {
			return true
		}
	}
	return false
}

func identify(_ context.Context, path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	return IdentityOf(fi).label(), nil
}

func hashConfig(ctx context.Context, path string) (string, error) {
	return hashUpTo(ctx, path, maxConfig)
}

func hashFile(ctx context.Context, path string) (string, error) {
	return hashUpTo(ctx, path, 1<<62)
}

// hashUpTo is the hex SHA-256 of the file's first limit bytes.
func hashUpTo(ctx context.Context, path string, limit int64) (string, error) {
	// Without O_NONBLOCK a FIFO in the file's place would block for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return "", err
	} else if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(interruptible{ctx, f}, limit)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// interruptible ends a long read with its context: a stop doesn't wait for a
// slow disk.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(b)
}
