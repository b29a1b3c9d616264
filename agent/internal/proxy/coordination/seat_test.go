package coordination

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"aether.internal/agent/internal/proxy/process"
)

func TestMain(m *testing.M) { process.Main(m.Run) }

const baseID = 7

func take(t *testing.T, dir string, n int) *Seat {
	t.Helper()
	s, err := TakeSeat(t.Context(), dir, baseID, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantHeld(t *testing.T, dir string, n int, want bool) {
	t.Helper()
	if got, err := SeatHeld(dir, baseID, n); got != want || err != nil {
		t.Fatalf("seat %d held: %v, %v; want %v", n, got, err, want)
	}
}

func TestSeatIsHeldFromTakeToRelease(t *testing.T) {
	dir := t.TempDir()
	wantHeld(t, dir, 1, false)
	s := take(t, dir, 1)
	wantHeld(t, dir, 1, true)
	wantHeld(t, dir, 2, false) // others are others
	if fi, err := os.Stat(SeatPath(dir, baseID, 1)); err != nil || fi.Mode() != 0o600 {
		t.Errorf("the lock file is %v, %v; want mode 0600", fi, err)
	}
	for range 2 {
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
	}
	wantHeld(t, dir, 1, false)
	if err := take(t, dir, 1).Release(); err != nil { // over the stale file
		t.Error(err)
	}
}

// Envoy inherits the seat; its death, of any kind, frees it.
func TestSeatBelongsToTheChildThatInheritedIt(t *testing.T) {
	dir := t.TempDir()
	s := take(t, dir, 0)
	child, err := process.Start(process.Spec{
		Path: "/bin/sleep", Args: []string{"60"}, Inherit: []*os.File{s.File()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, dir, 0, true)
	synctest.Test(t, func(t *testing.T) {
		if _, err := TakeSeat(t.Context(), dir, baseID, 0); !errors.Is(err, ErrSeatHeld) {
			t.Errorf("taken from a living child: %v", err)
		}
	})
	if err := child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	wantHeld(t, dir, 0, false)
	take(t, dir, 0).Release()
}

func TestSeatIsTriedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		holder := take(t, dir, 2)
		start := time.Now()
		_, err := TakeSeat(t.Context(), dir, baseID, 2)
		if !errors.Is(err, ErrSeatHeld) || !strings.Contains(err.Error(), SeatPath(dir, baseID, 2)) {
			t.Errorf("error %v; want ErrSeatHeld and the path", err)
		}
		if took := time.Since(start); took != seatPatience {
			t.Errorf("gave up after %v", took)
		}

		time.AfterFunc(300*time.Millisecond, func() { holder.Release() })
		start = time.Now()
		take(t, dir, 2).Release()
		if took := time.Since(start); took > 320*time.Millisecond {
			t.Errorf("a seat freed after 300ms was taken after %v", took)
		}
	})
}

func TestSeatWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		defer take(t, dir, 0).Release()
		cause := errors.New("stopping")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
		defer cancel()
		if _, err := TakeSeat(ctx, dir, baseID, 0); !errors.Is(err, cause) || errors.Is(err, ErrSeatHeld) {
			t.Error(err)
		}
	})
}

func TestProbesNeverCostATakerItsSeat(t *testing.T) {
	dir := t.TempDir()
	take(t, dir, 0).Release()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // joined below
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				SeatHeld(dir, baseID, 0)
			}
		}
	}()
	for range 20 {
		take(t, dir, 0).Release()
	}
	close(stop)
	<-done
}

func TestAProbeIsNobodysSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		take(t, dir, 0).Release()
		probe, err := os.Open(SeatPath(dir, baseID, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := tryLock(probe, syscall.LOCK_SH); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, dir, 0, false) // to another probe
		time.AfterFunc(200*time.Millisecond, func() { probe.Close() })
		take(t, dir, 0).Release() // a taker waits for it
	})
}

func TestOneOfManyTakersWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		won := make(chan *Seat, 8)
		for range cap(won) {
			go func() { // all received from below
				s, _ := TakeSeat(t.Context(), dir, baseID, 0)
				won <- s
			}()
		}
		winners := 0
		for range cap(won) {
			if s := <-won; s != nil {
				defer s.Release()
				winners++
			}
		}
		if winners != 1 {
			t.Errorf("%d winners", winners)
		}
	})
}

func TestSeatOnARemovedFileIsNoSeat(t *testing.T) {
	dir := t.TempDir()
	s := take(t, dir, 0)
	defer s.Release()
	path := SeatPath(dir, baseID, 0)
	if err := stillNamed(s.File(), path); err != nil {
		t.Error(err)
	}
	os.Remove(path)
	if err := stillNamed(s.File(), path); !errors.Is(err, ErrSeatHeld) {
		t.Errorf("removed: %v", err)
	}
	os.WriteFile(path, nil, 0o600)
	if err := stillNamed(s.File(), path); !errors.Is(err, ErrSeatHeld) {
		t.Errorf("replaced: %v", err)
	}
}

func TestWhatIsNotASeatIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "a directory (owner: uid "},
		"link":      {func(p string) error { return os.Symlink("/dev/null", p) }, "a symbolic link (owner: uid "},
		"dangling":  {func(p string) error { return os.Symlink("nowhere", p) }, "a symbolic link (owner: uid "},
		"FIFO":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "a FIFO (owner: uid "},
		"stranger's": {func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o600), os.Chown(p, 12345, -1))
		}, "belongs to uid 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := SeatPath(dir, baseID, 0)
			if err := c.put(path); errors.Is(err, os.ErrPermission) {
				t.Skip("needs root: ", err)
			} else if err != nil {
				t.Fatal(err)
			}
			_, takeErr := TakeSeat(t.Context(), dir, baseID, 0)
			_, heldErr := SeatHeld(dir, baseID, 0)
			for _, err := range []error{takeErr, heldErr} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || errors.Is(err, ErrSeatHeld) {
					t.Errorf("error %v; want %q and %s", err, c.want, path)
				}
			}
		})
	}
}

func TestThereAreThreeSeats(t *testing.T) {
	for _, n := range []int{-1, 3} {
		_, takeErr := TakeSeat(t.Context(), t.TempDir(), baseID, n)
		_, heldErr := SeatHeld(t.TempDir(), baseID, n)
		if takeErr == nil || heldErr == nil {
			t.Errorf("seat %d: %v, %v", n, takeErr, heldErr)
		}
	}
}

func TestDeniedOpenIsExplainedByTheOwner(t *testing.T) {
	if err := explain("/", &os.PathError{Op: "open", Path: "/", Err: syscall.EACCES}); !strings.Contains(err.Error(), "a directory (owner: uid 0)") {
		t.Error(err)
	}
	path := t.TempDir() + "/absent"
	if err := explain(path, &os.PathError{Op: "open", Path: path, Err: syscall.EACCES}); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}
