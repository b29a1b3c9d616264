package envoy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// segment is a shared segment with these fields and a pattern in between.
func segment(size, version, flags uint64) []byte {
	raw := bytes.Repeat([]byte{0xa5}, segmentSize)
	binary.LittleEndian.PutUint64(raw, size)
	binary.LittleEndian.PutUint64(raw[8:], version)
	binary.LittleEndian.PutUint64(raw[segmentFlags:], flags)
	return raw
}

func TestSegmentRepairClearsOneBitAndNothingElse(t *testing.T) {
	for before, after := range map[uint64]uint64{0: 0, 1: 0, 2: 2, 3: 2, 1<<63 | 1: 1 << 63} {
		id := freeBaseID(t)
		wantNil(t, os.WriteFile(SegmentPath(id), segment(104, 11, before), 0o600))
		if blocked, err := SegmentBlocked(id); err != nil || blocked != (before&1 == 1) {
			t.Errorf("flags %x: blocked %v, %v", before, blocked, err)
		}
		if repaired, err := RepairSegment(id); err != nil || repaired != (before&1 == 1) {
			t.Errorf("flags %x: repaired %v, %v", before, repaired, err)
		}
		got, err := os.ReadFile(SegmentPath(id))
		if err != nil || !bytes.Equal(got, segment(104, 11, after)) {
			t.Errorf("flags %x: %x, %v", before, got, err)
		}
		if repaired, err := RepairSegment(id); repaired || err != nil {
			t.Errorf("flags %x: repaired twice: %v, %v", before, repaired, err)
		}
		wantNil(t, RemoveSegment(id))
		wantNil(t, RemoveSegment(id))
		if _, err := SegmentBlocked(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after removal: %v", err)
		}
		if repaired, err := RepairSegment(id); repaired || err != nil {
			t.Errorf("after removal: repaired %v, %v", repaired, err)
		}
	}
}

func TestSegmentOfAnUnknownLayoutIsLeftAlone(t *testing.T) {
	for name, raw := range map[string][]byte{
		"another size":    segment(120, 11, 1),
		"another version": segment(104, 12, 1),
		"cut short":       segment(104, 11, 1)[:100],
		"empty":           nil,
	} {
		id := freeBaseID(t)
		wantNil(t, os.WriteFile(SegmentPath(id), raw, 0o600))
		if _, err := SegmentBlocked(id); err == nil {
			t.Errorf("%s: no error", name)
		}
		_, err := RepairSegment(id)
		wantError(t, err, "segment "+SegmentPath(id))
		if got, _ := os.ReadFile(SegmentPath(id)); !bytes.Equal(got, raw) {
			t.Errorf("%s: changed", name)
		}
	}
}

func TestSegmentOfAnotherMachineIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	wantNil(t, os.WriteFile(path, segment(104, 11, 1), 0o600))
	file, err := os.Open(path)
	wantNil(t, err)
	defer file.Close()
	_, err = readSegment(file, "arm64")
	wantError(t, err, "arm64", "not known")
}

// /dev/shm is everybody's.
func TestSegmentFollowsNoLink(t *testing.T) {
	id, target := freeBaseID(t), filepath.Join(t.TempDir(), "s")
	wantNil(t, os.WriteFile(target, segment(104, 11, 1), 0o600))
	wantNil(t, os.Symlink(target, SegmentPath(id)))
	_, err := RepairSegment(id)
	wantError(t, err, "symbolic links")
}

func TestSegmentPathIsTenTimesTheBaseID(t *testing.T) {
	if got := SegmentPath(4294967295); got != "/dev/shm/envoy_shared_memory_42949672950" {
		t.Error(got)
	}
}
