package envoy

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func seats(t *testing.T) SeatDirs {
	t.Helper()
	d := SeatDirs{StateDir: shortDir(t), BaseID: 7}
	for epoch := range Seats {
		wantNil(t, d.Prepare(epoch))
	}
	return d
}

func TestEachEpochModThreeHasItsOwnPath(t *testing.T) {
	d := SeatDirs{StateDir: "/s", BaseID: 7}
	for epoch, want := range map[int]string{0: "/s/seat.0/hr", 2: "/s/seat.2/hr", 3: "/s/seat.0/hr", 100: "/s/seat.1/hr"} {
		if got := d.SocketPath(epoch); got != want {
			t.Errorf("epoch %d: %s, want %s", epoch, got, want)
		}
	}
	if got, want := d.Socket(4, "parent", 3), "/s/seat.1/hr_parent_70"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d.BaseID = 214748364 // the largest: its tenfold has 32 bits
	if got, want := d.Socket(0, "child", 2), "/s/seat.0/hr_child_2147483642"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestASeatTellsWhoSitsThere(t *testing.T) {
	d := seats(t)
	if _, _, ok := d.Number(1); ok {
		t.Error("nobody has said anything")
	}
	for _, committed := range []bool{false, true} {
		wantNil(t, d.SetNumber(7, committed))
		if epoch, is, ok := d.Number(1); epoch != 7 || is != committed || !ok {
			t.Errorf("%d, %t, %t", epoch, is, ok)
		}
	}
	wantNil(t, d.Prepare(10))
	if _, _, ok := d.Number(1); ok {
		t.Error("the next one in the seat is told by the last one's number")
	}
	for _, garbage := range []string{"8", "-2", "x", "7 committed committed", "/etc/passwd", "99999999999999999999"} {
		wantNil(t, relink(garbage, d.number(1)))
		if epoch, _, ok := d.Number(1); ok {
			t.Errorf("%q is taken for %d", garbage, epoch)
		}
	}
}

func TestAStateDirectoryThatIsTooLongIsRefused(t *testing.T) {
	d := SeatDirs{BaseID: 1}
	longest := len(d.Socket(0, "udp_parent", 2))
	d.StateDir = "/" + strings.Repeat("x", maxSocketPath-longest-2)
	wantNil(t, d.Check())
	d.StateDir += "x"
	wantError(t, d.Check(), "too long", "108 bytes", "--state-dir")
}

// A parent's answers go to its child's name under its own path.
func TestNamesOfAHandoff(t *testing.T) {
	d := seats(t)
	bind(t, d.Answers(0))
	wantNil(t, d.LinkAnswers(0))
	wantNil(t, d.LinkUDP(0, 1))
	wantNil(t, d.LinkUDP(0, 1)) // again, for a retry
	if !Alive(d.Socket(0, "child", 1)) {
		t.Error("the parent's answers don't reach us")
	}
	bind(t, d.Socket(0, "udp_parent", 0))
	bind(t, d.Socket(1, "udp_child", 1))
	if !Alive(d.Socket(1, "udp_parent", 0)) || !Alive(d.Socket(0, "udp_child", 1)) {
		t.Error("datagrams are not forwarded")
	}
	wantNil(t, d.Unlink(0, 1))
	wantNil(t, d.Unlink(0, 1))
	if Alive(d.Socket(0, "udp_child", 1)) || !Alive(d.Socket(1, "udp_child", 1)) {
		t.Error("still linked, or the newcomer's own name was touched")
	}
	if !Alive(d.Socket(0, "child", 1)) {
		t.Error("a late answer finds nobody")
	}
}

func TestPlainNamesOfAHandoff(t *testing.T) {
	d := seats(t)
	answers := bind(t, d.Answers(2))
	wantNil(t, d.LinkAnswers(2))
	bind(t, d.Socket(2, "parent", 2))
	child := bind(t, d.Socket(3, "child", 3))
	wantNil(t, d.LinkPlain(2, 3))
	if !Alive(d.Socket(3, "parent", 2)) {
		t.Error("the newcomer doesn't reach its parent")
	}
	arrives := func(at *net.UnixConn) {
		t.Helper()
		_, err := at.WriteToUnix([]byte("x"), unixgram(d.Socket(2, "child", 3)))
		wantNil(t, err)
		at.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, err = at.Read(make([]byte, 10))
		wantNil(t, err)
	}
	arrives(child)
	wantNil(t, d.Unlink(2, 3))
	arrives(answers)
}

func TestASeatIsMadeAnew(t *testing.T) {
	d := seats(t)
	bind(t, d.Socket(0, "child", 0))
	wantNil(t, d.Prepare(3))
	if left, err := os.ReadDir(d.Dir(0)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(d.Dir(0)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	wantNil(t, d.Clear(0))
	wantNil(t, d.Clear(0))
	if _, err := os.Stat(d.Dir(0)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	wantError(t, SeatDirs{StateDir: "/nowhere"}.Prepare(0), "/nowhere")
}
