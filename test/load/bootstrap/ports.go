package bootstrap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports are taken from here: below the range from which the kernel gives ports
// to clients (32768 up), so that no connection going out can have one.
const (
	firstPort = 10000
	lastPort  = 31999
)

// reserved are the locks on our ports, held until the process ends.
var reserved struct {
	sync.Mutex
	files []*os.File
}

// FreePorts are n TCP ports of 127.0.0.1 that nobody uses. They are ours until
// this process ends, among all processes that ask here: Envoy binds with
// SO_REUSEPORT, so two of them at one port would share its connections and
// nobody would be told.
func FreePorts(n int) ([]int, error) {
	dir := filepath.Join(os.TempDir(), "aether-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	_ = os.Chmod(dir, 0o777|os.ModeSticky) // for other users; not ours: it was done
	reserved.Lock()
	defer reserved.Unlock()
	var ports []int
	const all = lastPort - firstPort + 1
	for i, start := 0, rand.IntN(all); i < all && len(ports) < n; i++ {
		port := firstPort + (start+i*7)%all
		lock, err := reserve(dir, port)
		if err != nil {
			continue
		}
		reserved.files = append(reserved.files, lock)
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("ports: only %d of %d are free from %d to %d", len(ports), n, firstPort, lastPort)
	}
	return ports, nil
}

// reserve locks a port that is free.
func reserve(dir string, port int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err // another user's
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = unused(port)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func unused(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
