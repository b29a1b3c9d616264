package real

import (
	"bytes"
	"net"
	"os"
	"syscall"
)

// badBootstraps and badBinaries are put into their place by rename, at a first
// start and as a reload; says are the telling words of the one sentence.
type badFile struct {
	name string
	put  func(*stage)
	says []string
}

func badBootstraps() []badFile {
	raw := func(text string) func(*stage) { return func(s *stage) { s.raw([]byte(text)) } }
	return []badFile{
		{"missing", func(s *stage) { s.clear(s.ConfigPath) }, []string{"envoy.yaml does not exist"}},
		{"empty", raw(""), []string{"envoy.yaml", "the bootstrap is empty"}},
		{"only comments", raw("# later\n"), []string{"the bootstrap is empty"}},
		{"a directory", func(s *stage) { s.clear(s.ConfigPath); s.must(os.Mkdir(s.ConfigPath, 0o755)) },
			[]string{"envoy.yaml is not a regular file but a directory"}},
		{"unreadable", putUnreadable, []string{"envoy.yaml"}},
		{"huge", func(s *stage) { s.raw(nil); s.must(os.Truncate(s.ConfigPath, 64<<20+1)) },
			[]string{"envoy.yaml is too large", "67108865 bytes", "at most 67108864"}},
		{"not a mapping", raw("- a\n- b\n"), []string{"isn't a mapping"}},
		{"not a bootstrap", raw("apiVersion: v1\nkind: ConfigMap\n"), []string{"valid but not an Envoy bootstrap"}},
		{"not YAML", raw("admin: {address: [\n"), []string{"neither YAML nor JSON"}},
		{"half written", func(s *stage) { text := s.yaml(); s.raw(text[:bytes.Index(text, []byte("codec_type"))]) },
			[]string{"Envoy refuses the bootstrap"}},
		{"an unknown field", func(s *stage) { s.raw(append(s.yaml(), "no_such_field: 1\n"...)) },
			[]string{"Envoy refuses the bootstrap", "no_such_field"}},
		{"without admin", func(s *stage) { s.raw(bytes.Replace(s.yaml(), []byte("\nadmin:"), []byte("\n# admin:"), 1)) },
			[]string{"has no admin address"}},
		{"admin port 0", func(s *stage) {
			_, port, _ := net.SplitHostPort(s.Bootstrap.Admin)
			s.raw(bytes.Replace(s.yaml(), []byte("port_value: "+port), []byte("port_value: 0"), 1))
		}, []string{"its admin port is 0"}},
	}
}

// putUnreadable: root can read any file, so it gets one that can't be read at
// all; a FIFO must not stop us either.
func putUnreadable(s *stage) {
	s.clear(s.ConfigPath)
	if os.Geteuid() == 0 {
		s.must(syscall.Mkfifo(s.ConfigPath, 0o600))
		return
	}
	s.must(os.WriteFile(s.ConfigPath, s.yaml(), 0))
}

func badBinaries() []badFile {
	return []badFile{
		{"missing", func(s *stage) { s.clear(s.EnvoyPath) }, []string{"bin/envoy", "no such file"}},
		{"a directory", func(s *stage) { s.clear(s.EnvoyPath); s.must(os.Mkdir(s.EnvoyPath, 0o755)) }, []string{"bin/envoy", "a directory"}},
		{"not executable", func(s *stage) { s.binary([]byte("#!/bin/sh\n"), 0o644) }, []string{"bin/envoy", "not executable"}},
		{"another architecture", func(s *stage) { s.binary(foreignELF(), 0o755) }, []string{"bin/envoy", "is built for", "this machine is"}},
		{"no program", func(s *stage) { s.binary([]byte("some text\n"), 0o755) }, []string{"neither an ELF program nor a script"}},
		{"hangs", func(s *stage) { s.script("bin/envoy", "exec sleep 1000") }, []string{"--version", "no answer within 5s"}},
		{"not Envoy", func(s *stage) { s.script("bin/envoy", "echo tool 1.2.3") }, []string{"is this Envoy?"}},
		{"fails", func(s *stage) { s.script("bin/envoy", "echo no such library >&2; exit 127") }, []string{"exit code 127", "no such library"}},
		{"an interpreter that isn't there", func(s *stage) { s.binary([]byte("#!/no/such/interpreter\n"), 0o755) }, []string{"bin/envoy", "no such file"}},
	}
}

// foreignELF is the header of a 64-bit program for a machine that isn't ours.
func foreignELF() []byte {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x01\x01")
	head[16] = 2   // ET_EXEC
	head[18] = 183 // aarch64
	if self, err := os.ReadFile("/proc/self/exe"); err == nil && self[18] == head[18] {
		head[18] = 62 // x86-64
	}
	return head
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) yaml() []byte {
	s.Helper()
	text, err := s.Bootstrap.YAML()
	s.must(err)
	return text
}

func (s *stage) clear(path string) { s.Helper(); s.must(os.RemoveAll(path)) }

func (s *stage) raw(text []byte) {
	s.Helper()
	s.dropDirectory(s.ConfigPath)
	s.must(s.WriteRaw(text))
}

func (s *stage) binary(text []byte, mode os.FileMode) {
	s.Helper()
	s.must(os.WriteFile(s.EnvoyPath+".new", text, mode))
	s.must(os.Rename(s.EnvoyPath+".new", s.EnvoyPath))
}

// dropDirectory: a file can't be renamed onto a directory.
func (s *stage) dropDirectory(path string) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		s.clear(path)
	}
}
