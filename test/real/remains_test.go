package real

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// nothingLeft fails the test for whatever a stopped supervisor has left behind.
// Empty lock files may stay: removing them would give two takers a file each.
func (s *stage) nothingLeft() { s.leftOnly() }

// leftOnly is nothingLeft where somebody else has a right to what is named.
func (s *stage) leftOnly(allowed ...string) {
	s.Helper()
	for _, found := range s.remains() {
		if !containsAny(found, allowed) {
			s.Errorf("left behind: %s", found)
		}
	}
}

// remains lists processes, sockets, files and locks that belong to the node.
func (s *stage) remains() []string {
	found := s.processes()
	found = append(found, s.boundSockets()...)
	found = append(found, entries(s.StateDir, nil)...)
	found = append(found, entries(filepath.Dir(s.Marker), []string{filepath.Base(s.Control) + ".lock"})...)
	found = append(found, exists(s.Segment())...)
	return append(found, heldLocks(append(s.seatFiles(), s.Control+".lock"))...)
}

// processes are those whose command line names the node's directory: every
// Envoy's, validator's and supervisor's does.
func (s *stage) processes() []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err == nil && bytes.Contains(line, []byte(s.Dir+"/")) {
			found = append(found, fmt.Sprintf("process %s", bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return found
}

// boundSockets are the kernel's, whether or not their files are still there.
func (s *stage) boundSockets() []string {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return []string{err.Error()}
	}
	abstract := fmt.Sprintf("envoy_domain_socket_%%s_%d", s.BaseID)
	var found []string
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, s.Dir+"/") || strings.Contains(line, fmt.Sprintf(abstract, "parent")) || strings.Contains(line, fmt.Sprintf(abstract, "child")) {
			found = append(found, "socket "+strings.TrimSpace(line))
		}
	}
	return found
}

func (s *stage) seatFiles() []string {
	files, _ := filepath.Glob(fmt.Sprintf("/dev/shm/aether_%d.seat.*", s.BaseID))
	return files
}

func entries(dir string, allowed []string) []string {
	var found []string
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{err.Error()}
	}
	for _, e := range list {
		if !containsAny(e.Name(), allowed) {
			found = append(found, "file "+filepath.Join(dir, e.Name()))
		}
	}
	return found
}

func exists(path string) []string {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return []string{"file " + path}
}

func heldLocks(paths []string) []string {
	var found []string
	for _, path := range paths {
		if held(path, syscall.LOCK_EX) {
			found = append(found, "lock on "+path)
		}
	}
	return found
}

// held tells whether somebody's lock on a file keeps us from ours.
func held(path string, how int) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close() // frees what we got
	return errors.Is(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// markerFresh is what a readiness probe would say: a regular file on which its
// writer holds the lock (rule 13).
func (s *stage) markerFresh() bool {
	info, err := os.Lstat(s.Marker)
	return err == nil && info.Mode().IsRegular() && held(s.Marker, syscall.LOCK_SH)
}

// alive tells whether a process runs, zombies excluded.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
