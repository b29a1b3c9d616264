package envoy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// The shared segment of hot restart 11.104 on x86-64 (fact 2): size and
// version, two process-shared mutexes, flags. On arm64 the mutexes are larger;
// that layout was never run, so it isn't touched.
const (
	segmentSize    = 104
	segmentVersion = 11
	segmentFlags   = 96 // offset of the flags
	initializing   = uint64(1)
)

// SegmentPath is the shared memory of all epochs with that base id.
func SegmentPath(baseID uint32) string {
	return "/dev/shm/envoy_shared_memory_" + strconv.FormatUint(uint64(baseID)*10, 10)
}

// SegmentBlocked tells whether the segment's "initialising" flag is set: a
// newcomer is on its way to LIVE, or one died on it, and then every later one
// will be refused (fact 2). The error is os.ErrNotExist where there is no
// segment, and another one where its layout isn't known.
func SegmentBlocked(baseID uint32) (bool, error) {
	file, flags, err := openSegment(baseID, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	file.Close()
	return flags&initializing != 0, nil
}

// RepairSegment clears the flag that a dead newcomer has left, and tells
// whether it was set. Only when no child of that base id lives: under one that
// initialises, two newcomers could start at once. A segment that isn't there
// needs no repair.
func RepairSegment(baseID uint32) (repaired bool, err error) {
	file, flags, err := openSegment(baseID, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	return clearFlag(file, flags)
}

// clearFlag clears the flag in a segment of known layout whose flags were read.
func clearFlag(file *os.File, flags uint64) (repaired bool, err error) {
	if flags&initializing == 0 {
		return false, nil
	}
	// Eight aligned bytes in one write: Envoys that have the segment mapped
	// see either value, nothing between.
	word := binary.LittleEndian.AppendUint64(nil, flags&^initializing)
	if _, err := file.WriteAt(word, segmentFlags); err != nil {
		return false, fmt.Errorf("repair segment: %w", err)
	}
	return true, nil
}

// RemoveSegment removes the segment. Only when nobody uses the base id: a
// newcomer of a living parent would abort without it (fact 7).
func RemoveSegment(baseID uint32) error {
	if err := os.Remove(SegmentPath(baseID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove segment: %w", err)
	}
	return nil
}

// openSegment opens the segment and reads its flags if its layout is known.
// The directory is everybody's: no link is followed, no FIFO waited for.
func openSegment(baseID uint32, mode int) (*os.File, uint64, error) {
	file, err := os.OpenFile(SegmentPath(baseID), mode|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("segment: %w", err)
	}
	flags, err := readSegment(file, runtime.GOARCH)
	if err != nil {
		file.Close()
		return nil, 0, fmt.Errorf("segment %s: %w", file.Name(), err)
	}
	return file, flags, nil
}

func readSegment(file *os.File, arch string) (flags uint64, err error) {
	if arch != "amd64" {
		return 0, fmt.Errorf("its layout on %s is not known, so it is left alone; a restart of the container clears it", arch)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	var raw [segmentSize]byte
	if _, err := file.ReadAt(raw[:], 0); err != nil || !info.Mode().IsRegular() {
		return 0, fmt.Errorf("is not a segment of hot restart %s (%v, %d bytes)", KnownHotRestartVersion, info.Mode(), info.Size())
	}
	size, version := binary.LittleEndian.Uint64(raw[0:]), binary.LittleEndian.Uint64(raw[8:])
	if size != segmentSize || version != segmentVersion {
		return 0, fmt.Errorf("its layout is not known (size %d, version %d; known are %d and %d), so it is left alone",
			size, version, segmentSize, segmentVersion)
	}
	return binary.LittleEndian.Uint64(raw[segmentFlags:]), nil
}
