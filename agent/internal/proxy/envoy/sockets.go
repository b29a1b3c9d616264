package envoy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// listen is LISTEN in /proc/net/tcp.
const listen = "0A"

// OpenSockets counts the TCP sockets of process pid whose local port is in
// ports, in any state but LISTEN and TIME_WAIT. Half-closed ones count, which
// "no ESTABLISHED socket" would miss; upstream connections don't, unless their
// own port happens to be a listener's (fact 28).
//
// It can't see what isn't TCP, MPTCP, a transparent listener's connections
// (their local port is the client's choice), nor another netns. An error means
// that nobody knows; os.ErrNotExist: the process is gone.
func OpenSockets(pid int, ports map[int]bool) (int, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	if _, err := os.Stat(proc); err != nil {
		return 0, fmt.Errorf("open sockets: %w", err)
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} {
		err := connectionsIn(proc+table, ports, inodes)
		if err != nil && !(table == "/net/tcp6" && errors.Is(err, fs.ErrNotExist)) { // no IPv6 here
			return 0, fmt.Errorf("open sockets: %w", err)
		}
	}
	if len(inodes) == 0 {
		return 0, nil // spares a look at each descriptor
	}
	n, err := owned(proc+"/fd", inodes)
	if err != nil {
		return 0, fmt.Errorf("open sockets: %w", err)
	}
	return n, nil
}

// connectionsIn collects the inodes of connections at the ports.
func connectionsIn(table string, ports map[int]bool, inodes map[string]bool) error {
	file, err := os.Open(table)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan() // headings
	for lines.Scan() {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
		local, rest := column(lines.Bytes(), 1)
		state, rest := column(rest, 1)
		colon := bytes.LastIndexByte(local, ':')
		if string(state) == listen || colon < 0 {
			continue
		}
		port, err := strconv.ParseUint(string(local[colon+1:]), 16, 16)
		if err != nil || !ports[int(port)] {
			continue
		}
		// 0: not accepted yet, or the kernel's alone (TIME_WAIT and its like).
		if inode, _ := column(rest, 5); string(inode) != "0" {
			inodes[string(inode)] = true
		}
	}
	return lines.Err()
}

// column skips n columns and returns the next one and what follows it.
func column(line []byte, n int) (value, rest []byte) {
	for ; ; n-- {
		line = bytes.TrimLeft(line, " ")
		end := bytes.IndexByte(line, ' ')
		if end < 0 {
			end = len(line)
		}
		if n == 0 {
			return line[:end], line[end:]
		}
		line = line[end:]
	}
}

// owned counts the descriptors in dir that are sockets with those inodes, each
// socket once.
func owned(dir string, inodes map[string]bool) (int, error) {
	fds, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer fds.Close()
	names, err := fds.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	n := 0
	var link [64]byte
	for _, name := range names {
		size, err := unix.Readlinkat(int(fds.Fd()), name, link[:])
		if err != nil {
			continue // closed meanwhile
		}
		inode, ok := bytes.CutPrefix(link[:size], []byte("socket:["))
		if !ok {
			continue
		}
		if inode = bytes.TrimSuffix(inode, []byte("]")); inodes[string(inode)] {
			delete(inodes, string(inode))
			n++
		}
	}
	return n, nil
}
