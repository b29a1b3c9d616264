package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// procDir is /proc.
const procDir = "/proc"

// process is what the kernel tells of one.
type process struct {
	RSS, Anon   int // KiB: all that is resident, and what isn't a file's
	Threads     int
	Descriptors int
	Sockets     int // among the descriptors
}

func readProcess(pid int) (process, error) {
	var p process
	dir := filepath.Join(procDir, strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return p, err
	}
	for _, want := range []struct {
		field string
		into  *int
	}{{"VmRSS", &p.RSS}, {"RssAnon", &p.Anon}, {"Threads", &p.Threads}} {
		if *want.into, err = statusField(string(status), want.field); err != nil {
			return p, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return p, p.countDescriptors(filepath.Join(dir, "fd"))
}

// statusField is the number behind "field:" in /proc/PID/status.
func statusField(status, field string) (int, error) {
	for line := range strings.Lines(status) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return strconv.Atoi(number)
		}
	}
	return 0, fmt.Errorf("its status has no field %s", field)
}

func (p *process) countDescriptors(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		p.Descriptors++
		if strings.HasPrefix(target, "socket:") {
			p.Sockets++
		}
	}
	return err
}

// family is what a process has started and not yet buried.
type family struct{ Living, Zombies int }

// children counts the children of pid. One that ends meanwhile isn't counted.
func children(pid int) (family, error) {
	var f family
	err := eachProcess(func(_ int, dir string) {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			return
		}
		switch state, parent := stateAndParent(string(stat)); {
		case parent != pid:
		case state == "Z":
			f.Zombies++
		default:
			f.Living++
		}
	})
	return f, err
}

// stateAndParent reads "pid (any name) state ppid …".
func stateAndParent(stat string) (state string, parent int) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// mentioning counts the processes with text in their arguments, whoever's
// children they are by now.
func mentioning(text string) (int, error) {
	n := 0
	err := eachProcess(func(_ int, dir string) {
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(arguments), text) {
			n++
		}
	})
	return n, err
}

func eachProcess(visit func(pid int, dir string)) error {
	entries, err := os.ReadDir(procDir)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			visit(pid, filepath.Join(procDir, e.Name()))
		}
	}
	return err
}

// filesBelow counts everything in dir that isn't a directory: files, links and
// sockets.
func filesBelow(dir string) (int, error) {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	return n, err
}

// filesNamed counts the files in dir whose name contains text.
func filesNamed(dir, text string) (int, error) {
	n := 0
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.Contains(e.Name(), text) {
			n++
		}
	}
	return n, err
}
