package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// MaxPath is the longest name of a socket: 108 bytes in the kernel's address,
// one of them the final zero.
const MaxPath = 107

// ErrTaken is the kind of error when somebody else serves at our path.
var ErrTaken = errors.New("taken")

const (
	probeTime = time.Second
	backlog   = 16
)

// CheckPath says what makes path unfit for a socket, before anything is touched.
func CheckPath(path string) error {
	switch {
	case path == "":
		return errors.New("the control socket has no name")
	case len(path) > MaxPath:
		return fmt.Errorf("control socket %s: its name has %d bytes, but a socket's name can have %d at most",
			path, len(path), MaxPath)
	}
	return nil
}

// takeLock holds path's lock for as long as the server lives, so that two
// supervisors that start together can't both find a dead socket and replace
// each other's new one. The lock file stays behind: removing it would let two
// holders have a file each.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, taken(path, "its lock is held by another supervisor"+answeredBy(path))
		}
		return nil, fmt.Errorf("control socket %s: lock %s.lock: %w", path, path, err)
	}
	return f, nil
}

func taken(path, why string) error {
	return fmt.Errorf("control socket %s is %w: %s; stop that one or choose another --control-socket",
		path, ErrTaken, why)
}

// clearDead removes a socket that nobody listens on any more. Whatever else is
// there is somebody's: it is named and left alone.
func clearDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("control socket %s: there is %s of that name; remove it or choose another --control-socket",
			path, kind(info.Mode()))
	}
	conn, err := net.DialTimeout("unix", path, probeTime)
	if err == nil {
		defer conn.Close()
		return taken(path, "somebody answers there"+listener(conn))
	}
	// Only a refusal proves that no listener is left: a full backlog, a datagram
	// socket or a missing right do not.
	if !errors.Is(err, unix.ECONNREFUSED) {
		return taken(path, fmt.Sprintf("the socket there isn't a dead one (%v)", cause(err)))
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("control socket: remove the dead one: %w", err)
	}
	return nil
}

// bind makes the listening socket. Its file has mode 0600 from its first moment:
// on Linux a socket's file takes the mode of the open socket, less the umask.
// Where a kernel doesn't do so the second chmod still comes before listen(),
// and until then every connect() is refused. The umask would do as well, but it
// belongs to the whole process, and an Envoy may be forked at the same moment.
func bind(path string) (net.Listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() // FileListener has a duplicate
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"chmod", func() error { return unix.Fchmod(fd, 0o600) }},
		{"bind", func() error { return unix.Bind(fd, &unix.SockaddrUnix{Name: path}) }},
		{"chmod", func() error { return os.Chmod(path, 0o600) }},
		{"listen", func() error { return unix.Listen(fd, backlog) }},
	} {
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("control socket %s: %s: %w", path, step.name, err)
		}
	}
	return net.FileListener(file)
}

// makeDir makes the socket's directory when it is missing, for us alone.
func makeDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("control socket %s: its directory: %w", path, err)
	}
	return nil
}

func answeredBy(path string) string {
	conn, err := net.DialTimeout("unix", path, probeTime)
	if err != nil {
		return ""
	}
	defer conn.Close()
	return listener(conn)
}

// listener names the process that listens on the other end of conn.
func listener(conn net.Conn) string {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return ""
	}
	var cred *unix.Ucred
	_ = raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || cred == nil || cred.Pid == 0 { // 0: of another PID namespace
		return ""
	}
	return fmt.Sprintf(" (pid %d)", cred.Pid)
}

func cause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case 0:
		return "a regular file"
	}
	return "a device"
}
