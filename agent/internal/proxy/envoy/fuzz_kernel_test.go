package envoy

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A segment is changed in one bit, or not at all.
func FuzzSegment(f *testing.F) {
	f.Add(segment(104, 11, 1), true)
	f.Add(segment(104, 11, 1<<63|2), false)
	f.Add(segment(104, 11, 1)[:103], true)
	f.Add(append(segment(104, 11, 3), 1, 2, 3), true)
	f.Add(segment(120, 11, 1), true)
	f.Add([]byte{}, true)
	path := filepath.Join(f.TempDir(), "segment")
	f.Fuzz(func(t *testing.T, before []byte, here bool) {
		arch := "amd64"
		if !here {
			arch = "arm64"
		}
		wantNil(t, os.WriteFile(path, before, 0o600))
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		wantNil(t, err)
		defer file.Close()
		flags, err := readSegment(file, arch)
		known := here && len(before) >= segmentSize &&
			binary.LittleEndian.Uint64(before) == segmentSize && binary.LittleEndian.Uint64(before[8:]) == segmentVersion
		if known != (err == nil) {
			t.Fatalf("known %t, %v", known, err)
		}
		want := bytes.Clone(before)
		if known {
			if flags != binary.LittleEndian.Uint64(before[segmentFlags:]) {
				t.Errorf("flags %x", flags)
			}
			want[segmentFlags] &^= 1
			repaired, err := clearFlag(file, flags)
			if err != nil || repaired != (flags&1 == 1) {
				t.Errorf("flags %x: repaired %t, %v", flags, repaired, err)
			}
			if again, err := readSegment(file, arch); err != nil || again != flags&^1 {
				t.Errorf("flags %x became %x, %v", flags, again, err)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, want) {
			t.Errorf("%x became %x, %v", before, after, err)
		}
	})
}

func FuzzSocketTable(f *testing.F) {
	f.Add([]byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"+
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1 x\n"+
		"   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 42 1 x\n"+
		"   2: 0100007F:1F90 0100007F:D432 06 00000000:00000000 03:00000000 00000000     0        0 0 3 x\n"), uint16(0x1f90))
	f.Add([]byte("\n:0 :1\n   "), uint16(0))
	path := filepath.Join(f.TempDir(), "tcp")
	f.Fuzz(func(t *testing.T, table []byte, port uint16) {
		wantNil(t, os.WriteFile(path, table, 0o600))
		found, none := map[string]finding{}, map[string]finding{}
		_ = NewSockets(0, map[int]bool{int(port): true}).readTable(path, nil, found)
		if found["0"] != unknown {
			t.Error("what no process holds is somebody's connection")
		}
		if len(found) > bytes.Count(table, []byte("\n"))+1 {
			t.Errorf("%d sockets in %d bytes", len(found), len(table))
		}
		for inode := range found {
			if !bytes.Contains(table, []byte(inode)) {
				t.Errorf("inode %q is made up", inode)
			}
		}
		if _ = NewSockets(0, nil).readTable(path, nil, none); len(none) > 0 {
			t.Errorf("sockets at no port: %v", none)
		}
	})
}

func FuzzMachine(f *testing.F) {
	elf := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"), 62, 0)
	f.Add(elf)
	f.Add(append(bytes.Clone(elf[:18]), 183, 0))
	f.Add([]byte("#!/bin/sh\n"))
	f.Add([]byte("#"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, program []byte) {
		err := checkMachine(bytes.NewReader(program))
		script := bytes.HasPrefix(program, []byte("#!"))
		native := len(program) >= 20 && bytes.HasPrefix(program, []byte("\x7fELF")) &&
			machines[binary.LittleEndian.Uint16(program[18:])] == runtime.GOARCH
		swapped := len(program) >= 20 && program[5] == 2
		if !swapped && (script || native) != (err == nil) {
			t.Errorf("script %t, ours %t: %v", script, native, err)
		}
	})
}
