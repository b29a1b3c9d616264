package envoy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// listen is LISTEN in /proc/net/tcp.
const listen = "0A"

// ErrUncountable: a process has connections that the kernel's tables don't show.
var ErrUncountable = errors.New("it has MPTCP sockets, whose ports the kernel doesn't tell")

// OpenSockets is one look, see Sockets.Count.
func OpenSockets(pid int, ports map[int]bool) (int, error) { return NewSockets(pid, ports).Count() }

// Sockets counts the connections of one process, look by look. It remembers
// what each socket is: to read the node's TCP tables takes 30 ms where 7,000
// sockets are in TIME_WAIT, and a look at the descriptors 0.1 ms. It is not
// safe for concurrent use.
type Sockets struct {
	pid    int
	ports  map[int]bool
	before map[string]finding // by inode, of the last look
}

// finding is what is known of a socket.
type finding int

const (
	connection finding = -1
	// unknown, and so many tables have lacked it: one that changes while it's read
	// may leave a line out, again and again on a busy node.
	unknown  finding = 0
	other    finding = 5
	listener finding = 6 // at one of the ports
)

// mayBe tells whether f is a connection for all that is known. A socket that no
// table has shown yet is: to take it for none cut streams.
func (f finding) mayBe() bool { return f == connection || f.open() }

// open tells whether only the tables can say what it is.
func (f finding) open() bool { return f >= unknown && f < other }

// NewSockets counts those whose local port is in ports.
func NewSockets(pid int, ports map[int]bool) *Sockets { return &Sockets{pid: pid, ports: ports} }

// Count counts the TCP sockets of the process whose local port is in ports, in
// any state but LISTEN and TIME_WAIT. Half-closed ones count, which "no
// ESTABLISHED socket" would miss; upstream connections don't, unless their own
// port happens to be a listener's (fact 28).
//
// It can't see what isn't TCP, a transparent listener's connections (their
// local port is the client's choice), nor another netns. An error means that
// nobody knows; os.ErrNotExist: the process is gone.
func (s *Sockets) Count() (int, error) {
	n, err := s.count()
	if err != nil {
		return 0, fmt.Errorf("open sockets: %w", err)
	}
	return n, nil
}

// Listening tells whether the process had a listening socket at one of the
// ports at the last look: then it may have accepted since.
func (s *Sockets) Listening() bool {
	for _, f := range s.before {
		if f == listener {
			return true
		}
	}
	return false
}

func (s *Sockets) count() (int, error) {
	sockets, err := socketsOf(s.proc("fd"))
	if errors.Is(err, fs.ErrPermission) {
		return s.countUnseen(err)
	}
	if err != nil {
		return 0, err
	}
	if err := s.recognize(sockets); err != nil {
		return 0, err
	}
	n := 0
	for _, f := range s.before {
		if f.mayBe() {
			n++
		}
	}
	return n, nil
}

func (s *Sockets) proc(path string) string {
	return filepath.Join("/proc", strconv.Itoa(s.pid), path)
}

// countUnseen is for an Envoy with file capabilities, whose descriptors only
// root may see: where nobody at all has a connection, it has none.
func (s *Sockets) countUnseen(reason error) (int, error) {
	all, err := s.inTables(nil)
	if err != nil {
		return 0, err
	}
	for _, f := range all {
		if f == connection {
			return 0, reason
		}
	}
	return 0, nil
}

// recognize finds out what each socket is, by descriptor name and inode, and
// forgets those that are closed.
func (s *Sockets) recognize(sockets map[string]string) error {
	now := make(map[string]finding, len(sockets))
	open := false // is there one that only the tables tell?
	for inode, fd := range sockets {
		f := s.before[inode]
		if f == unknown {
			var err error
			if f, err = byProtocol(s.proc("fd/" + fd)); err != nil {
				return err
			}
		}
		now[inode] = f
		open = open || f.open()
	}
	s.before = now
	if !open {
		return nil
	}
	found, err := s.inTables(now)
	if err != nil {
		return err
	}
	for inode, f := range now {
		switch what, seen := found[inode]; {
		case !f.open():
		case seen:
			now[inode] = what
		default:
			now[inode] = f + 1
		}
	}
	return nil
}

// byProtocol asks the socket file system, which spares the tables for an Envoy
// that has nothing but its hot-restart sockets left. A kernel that doesn't tell
// leaves it unknown.
func byProtocol(fd string) (finding, error) {
	var name [32]byte
	n, err := unix.Getxattr(fd, "system.sockprotoname", name[:])
	if err != nil {
		return unknown, nil
	}
	switch protocol := string(bytes.TrimRight(name[:n], "\x00")); protocol {
	case "TCP", "TCPv6":
		return unknown, nil
	case "MPTCP", "MPTCPv6":
		return unknown, ErrUncountable
	}
	return other, nil
}

// inTables tells what sockets are, by inode: of those that are wanted all that
// the tables have, or with nil everybody's at the ports.
func (s *Sockets) inTables(wanted map[string]finding) (map[string]finding, error) {
	inodes := map[string]finding{}
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		err := s.readTable(s.proc(table), wanted, inodes)
		if err != nil && !(table == "net/tcp6" && errors.Is(err, fs.ErrNotExist)) { // no IPv6 here
			return nil, err
		}
	}
	return inodes, nil
}

// readTable collects what one table tells.
func (s *Sockets) readTable(table string, wanted, inodes map[string]finding) error {
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
		if colon < 0 {
			continue
		}
		port, err := strconv.ParseUint(string(local[colon+1:]), 16, 16)
		if err != nil {
			continue
		}
		inode, _ := column(rest, 5)
		_, want := wanted[string(inode)]
		at := s.ports[int(port)]
		switch {
		// 0: not accepted yet, or the kernel's alone (TIME_WAIT and its like).
		case string(inode) == "0", wanted != nil && !want, wanted == nil && !at:
		case !at:
			inodes[string(inode)] = other
		case string(state) == listen:
			inodes[string(inode)] = listener
		default:
			inodes[string(inode)] = connection
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

// socketsOf maps the inode of each socket among the descriptors in dir to the
// name of one of them.
func socketsOf(dir string) (map[string]string, error) {
	fds, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer fds.Close()
	names, err := fds.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	sockets := map[string]string{}
	var link [64]byte
	for _, name := range names {
		size, err := unix.Readlinkat(int(fds.Fd()), name, link[:])
		if err != nil {
			continue // closed meanwhile
		}
		if inode, ok := bytes.CutPrefix(link[:size], []byte("socket:[")); ok {
			sockets[string(bytes.TrimSuffix(inode, []byte("]")))] = name
		}
	}
	return sockets, nil
}
