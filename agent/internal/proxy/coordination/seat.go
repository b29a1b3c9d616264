// Package coordination holds what supervisors know of each other without
// talking: seats, the heartbeat, the ready marker, and the directories they are
// in. Who lives is told by locks that the kernel frees, never by a recorded
// number or an age (rules 10 and 13).
package coordination

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Seats is how many there are for one base-id: Envoy tells epochs apart by
// their number modulo 3 (fact 7).
const Seats = 3

// ErrSeatHeld: somebody living sits there.
var ErrSeatHeld = errors.New("held by a living Envoy or supervisor")

// A probe holds the lock for an instant, and so does a child between fork and
// exec: a seat is taken only after this long of nothing but refusals.
const (
	seatPatience = time.Second
	seatRetry    = 10 * time.Millisecond
)

// Seat is an exclusive lock. The lock belongs to the open file, which Envoy
// inherits: it's held while anybody has that descriptor, and any death frees
// it. No lease, no clock.
type Seat struct{ file *os.File }

// SeatPath names the lock file of seat n, 0 ≤ n < Seats, beside the shared
// segment it guards. The file stays when the seat is free: to remove it would
// let two takers lock two files of one name.
func SeatPath(dir string, baseID uint32, n int) string {
	return filepath.Join(dir, fmt.Sprintf("aether_%d.seat.%d", baseID, n))
}

// TakeSeat takes seat n of the base-id in dir ("/dev/shm"), and retries for up
// to a second. Errors name the path; errors.Is ErrSeatHeld when another one has
// it, the cause of ctx when that ended first.
func TakeSeat(ctx context.Context, dir string, baseID uint32, n int) (*Seat, error) {
	if err := checkSeat(n); err != nil {
		return nil, err
	}
	path := SeatPath(dir, baseID, n)
	patience := time.NewTimer(seatPatience)
	defer patience.Stop()
	retry := time.NewTicker(seatRetry)
	defer retry.Stop()
	for {
		f, err := lockSeat(path)
		if err == nil {
			return &Seat{f}, nil
		}
		err = fmt.Errorf("seat %s: %w", path, err)
		if !errors.Is(err, ErrSeatHeld) {
			return nil, err
		}
		select {
		case <-retry.C:
		case <-patience.C:
			return nil, err
		case <-ctx.Done():
			return nil, fmt.Errorf("seat %s: gave up waiting for it: %w", path, context.Cause(ctx))
		}
	}
}

// TrySeat takes a seat if it is free now. errors.Is ErrSeatHeld when it isn't.
func TrySeat(dir string, baseID uint32, n int) (*Seat, error) {
	if err := checkSeat(n); err != nil {
		return nil, err
	}
	path := SeatPath(dir, baseID, n)
	f, err := lockSeat(path)
	if err != nil {
		return nil, fmt.Errorf("seat %s: %w", path, err)
	}
	return &Seat{f}, nil
}

func lockSeat(path string) (*os.File, error) {
	f, err := openOwn(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	// Whoever can open the file can hold the lock for ever.
	err = f.Chmod(0o600)
	if err == nil {
		err = tryLock(f, syscall.LOCK_EX)
	}
	if err == nil {
		err = stillNamed(f, path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stillNamed refuses a lock on a file that was removed after it was opened:
// the next taker would lock another one. ErrSeatHeld makes for another try.
func stillNamed(f *os.File, path string) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if err != nil || !os.SameFile(mine, named) {
		return fmt.Errorf("%w (its file was replaced while it was taken)", ErrSeatHeld)
	}
	return nil
}

// File is the descriptor for Envoy to inherit.
func (s *Seat) File() *os.File { return s.file }

// Release closes our descriptor; the seat is free if nobody inherited it. It
// never unlocks: that would free the file that Envoy shares with us. A second
// call does nothing.
func (s *Seat) Release() error {
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// SeatHeld tells whether somebody has the seat, our own process included. The
// lock it tries is shared and given back before it returns.
func SeatHeld(dir string, baseID uint32, n int) (bool, error) {
	if err := checkSeat(n); err != nil {
		return false, err
	}
	path := SeatPath(dir, baseID, n)
	held, err := probe(path)
	if err != nil {
		return false, fmt.Errorf("seat %s: %w", path, err)
	}
	return held, nil
}

func probe(path string) (held bool, err error) {
	f, err := openOwn(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = tryLock(f, syscall.LOCK_SH)
	if errors.Is(err, ErrSeatHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// Close alone would leave the lock to a child just between fork and exec.
	return false, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

func tryLock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrSeatHeld
	}
	return os.NewSyscallError("flock", err)
}

func checkSeat(n int) error {
	if n < 0 || n >= Seats {
		return fmt.Errorf("seat %d: there are only seats 0 to %d", n, Seats-1)
	}
	return nil
}
