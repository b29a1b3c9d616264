package envoy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// part is a datagram and the descriptors that came along.
type part struct {
	data  []byte
	files []int
}

func (p part) close() {
	for _, fd := range p.files {
		unix.Close(fd)
	}
}

// envoysDatagram is the most that Envoy sends at once and reads at once: at more
// it aborts ("recvmsg() left msg_flags = 32").
const envoysDatagram = 4096

// message is what parts make together.
type message struct {
	parts []part
	size  uint64 // of the parts
}

// largestMessage bounds what is kept: the stats of 20,000 clusters are some ten
// MB.
const largestMessage = 1 << 30

// add takes the next datagram and tells whether the message is whole. What can't
// be the beginning of one is dropped.
func (m *message) add(p part) (whole bool) {
	if len(m.parts) == 0 && len(p.data) < frameHeader {
		p.close()
		return false
	}
	m.parts = append(m.parts, p)
	m.size += uint64(len(p.data))
	want := binary.BigEndian.Uint64(m.parts[0].data)
	if want > largestMessage {
		m.close()
		*m = message{}
		return false
	}
	return m.size >= frameHeader+want
}

// bytes are its content without the header.
func (m message) bytes() []byte {
	var all []byte
	for _, p := range m.parts {
		all = append(all, p.data...)
	}
	return all[min(frameHeader, len(all)):]
}

// close gives up its descriptors. Those of a parent are its listening sockets:
// one that stayed open would go on to listen when both Envoys have closed theirs.
func (m message) close() {
	for _, p := range m.parts {
		p.close()
	}
}

// largestDatagram is room for any of Envoy's, and for what isn't one.
const largestDatagram = 1 << 16

// receiver reads datagrams with their descriptors.
type receiver struct {
	conn     *net.UnixConn
	buf, oob []byte
}

func newReceiver(conn *net.UnixConn) *receiver {
	const most = 16 // Envoy sends one
	return &receiver{conn, make([]byte, largestDatagram), make([]byte, unix.CmsgSpace(4*most))}
}

// next waits for a datagram. Its descriptors are closed on exec.
func (r *receiver) next() (part, error) {
	n, oobn, _, _, err := r.conn.ReadMsgUnix(r.buf, r.oob)
	if err != nil {
		return part{}, err
	}
	return part{bytes.Clone(r.buf[:n]), rights(r.oob[:oobn])}, nil
}

func rights(oob []byte) (files []int) {
	controls, _ := unix.ParseSocketControlMessage(oob)
	for i := range controls {
		fds, _ := unix.ParseUnixRights(&controls[i])
		files = append(files, fds...)
	}
	return files
}

// send passes a part on and gives up its descriptors.
func (p part) send(conn *net.UnixConn) error {
	defer p.close()
	var oob []byte
	if len(p.files) > 0 {
		oob = unix.UnixRights(p.files...)
	}
	raw, err := conn.SyscallConn() // WriteMsgUnix takes no socket that is connected
	if err != nil {
		return err
	}
	failed := raw.Write(func(fd uintptr) (done bool) {
		err = unix.Sendmsg(int(fd), p.data, oob, nil, unix.MSG_NOSIGNAL)
		return err != unix.EAGAIN
	})
	return cmp.Or(failed, err)
}
