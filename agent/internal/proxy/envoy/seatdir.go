package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Generations that Envoy's names tell apart: only epoch mod 3 counts (fact 7).
const Seats = 3

// maxSocketPath is what fits into sockaddr_un with its final NUL.
const maxSocketPath = 107

// SeatDirs names the socket paths of a state directory. Each epoch has a
// --socket-path of its own, `<state-dir>/seat.<epoch mod 3>/hr`: with shared
// names a late terminate of an older epoch ends the wrong one (fact 28).
type SeatDirs struct {
	StateDir string
	BaseID   uint32
}

// Dir is the directory of an epoch's seat.
func (d SeatDirs) Dir(epoch int) string {
	return filepath.Join(d.StateDir, "seat."+strconv.Itoa(epoch%Seats))
}

// SocketPath is the --socket-path of an epoch.
func (d SeatDirs) SocketPath(epoch int) string { return filepath.Join(d.Dir(epoch), "hr") }

// Socket is the name of `role` of epoch `of` under the path of epoch `under`.
func (d SeatDirs) Socket(under int, role string, of int) string {
	return fmt.Sprintf("%s_%s_%d", d.SocketPath(under), role, uint64(d.BaseID)*10+uint64(of%Seats))
}

// Lives tells whether an Envoy is at an epoch's own socket.
func (d SeatDirs) Lives(epoch int) bool { return Alive(d.Socket(epoch, "child", epoch)) }

// Check refuses a state directory whose longest socket name doesn't fit.
func (d SeatDirs) Check() error {
	longest := d.Socket(0, "udp_parent", 2)
	if len(longest) > maxSocketPath {
		return fmt.Errorf("state directory %s is too long: its socket %s has %d bytes and a socket address holds %d; choose a shorter --state-dir",
			d.StateDir, longest, len(longest), maxSocketPath)
	}
	return nil
}

// Prepare makes an epoch's seat directory anew. The caller holds the seat, so
// whatever lies there belongs to nobody alive.
func (d SeatDirs) Prepare(epoch int) error {
	if err := d.Clear(epoch); err != nil {
		return err
	}
	return os.Mkdir(d.Dir(epoch), 0o700)
}

// Clear removes an epoch's seat directory.
func (d SeatDirs) Clear(epoch int) error { return os.RemoveAll(d.Dir(epoch)) }

// SetNumber says which epoch sits there, and whether it is committed. It is the
// target of a link that leads nowhere: replaced at once, and read without opening
// what somebody may have put there.
func (d SeatDirs) SetNumber(epoch int, committed bool) error {
	text := strconv.Itoa(epoch)
	if committed {
		text += committedSuffix
	}
	return relink(text, d.number(epoch))
}

// Number is what SetNumber has said; not ok if nobody has.
func (d SeatDirs) Number(seat int) (epoch int, committed, ok bool) {
	text, err := os.Readlink(d.number(seat))
	text, committed = strings.CutSuffix(text, committedSuffix)
	epoch, bad := strconv.Atoi(text)
	if err != nil || bad != nil || epoch < 0 || epoch%Seats != seat%Seats {
		return 0, false, false
	}
	return epoch, committed, true
}

func (d SeatDirs) number(epoch int) string { return filepath.Join(d.Dir(epoch), "epoch") }

const committedSuffix = " committed"

// Answers is where we take an epoch's answers to its children (see Parent).
func (d SeatDirs) Answers(epoch int) string { return d.SocketPath(epoch) + "_answers" }

// LinkAnswers makes what an epoch answers its children come to us. It sends that
// to its child's name under its own path.
func (d SeatDirs) LinkAnswers(epoch int) error {
	return relink(d.Answers(epoch), d.Socket(epoch, "child", epoch+1))
}

// LinkUDP joins the sockets by which a parent forwards datagrams; no relay
// stands between these.
func (d SeatDirs) LinkUDP(parent, newcomer int) error {
	return errors.Join(
		relink(d.Socket(newcomer, "udp_child", newcomer), d.Socket(parent, "udp_child", newcomer)),
		relink(d.Socket(parent, "udp_parent", parent), d.Socket(newcomer, "udp_parent", parent)),
	)
}

// LinkPlain gives parent and newcomer each other's real sockets: the plain way,
// without a relay.
func (d SeatDirs) LinkPlain(parent, newcomer int) error {
	return errors.Join(
		relink(d.Socket(newcomer, "child", newcomer), d.Socket(parent, "child", newcomer)),
		relink(d.Socket(parent, "parent", parent), d.Socket(newcomer, "parent", parent)),
	)
}

// Taken is where another supervisor than the parent's takes that parent's
// answers to its newcomer: in the newcomer's directory, because the parent's is
// removed by whoever owns it. The name tells that owner whether the newcomer's
// own timer ends the parent (UDP), or it does itself.
func (d SeatDirs) Taken(newcomer int, timed bool) string {
	if timed {
		return d.SocketPath(newcomer) + "_timed"
	}
	return d.SocketPath(newcomer) + takenSuffix
}

const takenSuffix = "_taken"

// LinkTaken makes what a parent answers come there. The link is relative: each
// pod may have the state directory at a path of its own.
func (d SeatDirs) LinkTaken(parent, newcomer int, timed bool) error {
	at := d.Taken(newcomer, timed)
	target := filepath.Join("..", filepath.Base(filepath.Dir(at)), filepath.Base(at))
	return relink(target, d.Socket(parent, "child", newcomer))
}

// IsTaken tells whether another supervisor stands in a parent's place, and
// leaves that parent's end to whoever started it.
func (d SeatDirs) IsTaken(parent int) bool {
	target, err := os.Readlink(d.Socket(parent, "child", parent+1))
	return err == nil && strings.HasSuffix(target, takenSuffix)
}

// AnswersAreOurs tells whether a parent's answers come to its own supervisor.
func (d SeatDirs) AnswersAreOurs(parent int) bool {
	target, err := os.Readlink(d.Socket(parent, "child", parent+1))
	return err == nil && target == d.Answers(parent)
}

// AnswersLinked tells one link for a parent's answers from another, even to the
// same place: whoever was a parent's newcomer has linked them. "": there is none.
func (d SeatDirs) AnswersLinked(parent int) string {
	var stat syscall.Stat_t
	if syscall.Lstat(d.Socket(parent, "child", parent+1), &stat) != nil {
		return ""
	}
	return fmt.Sprint(stat.Ino, stat.Mtim)
}

// Unlink takes back what was linked under a living parent's path; its answers
// come to us.
func (d SeatDirs) Unlink(parent, newcomer int) error {
	err := os.Remove(d.Socket(parent, "udp_child", newcomer))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.LinkAnswers(parent))
}

// relink replaces a name at once: there is never a moment without it.
func relink(target, name string) error {
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, next); err != nil {
		return err
	}
	return os.Rename(next, name)
}
