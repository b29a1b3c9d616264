package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

// LinkChild makes the parent's answers reach the newcomer: the parent sends
// them to the child's name under its own path.
func (d SeatDirs) LinkChild(parent, newcomer int) error {
	for _, role := range []string{"child", "udp_child"} {
		if err := relink(d.Socket(newcomer, role, newcomer), d.Socket(parent, role, newcomer)); err != nil {
			return err
		}
	}
	return nil
}

// LinkParent gives the newcomer its parent's real sockets: the plain way,
// without a relay.
func (d SeatDirs) LinkParent(parent, newcomer int) error {
	if err := d.LinkUDPParent(parent, newcomer); err != nil {
		return err
	}
	return relink(d.Socket(parent, "parent", parent), d.Socket(newcomer, "parent", parent))
}

// LinkUDPParent gives the newcomer its parent's UDP forwarding socket.
func (d SeatDirs) LinkUDPParent(parent, newcomer int) error {
	return relink(d.Socket(parent, "udp_parent", parent), d.Socket(newcomer, "udp_parent", parent))
}

// Unlink takes back what LinkChild left under the parent's path.
func (d SeatDirs) Unlink(parent, newcomer int) error {
	var errs []error
	for _, role := range []string{"child", "udp_child"} {
		if err := os.Remove(d.Socket(parent, role, newcomer)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func relink(target, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, name)
}
