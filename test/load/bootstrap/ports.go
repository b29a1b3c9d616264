package bootstrap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from here: below the range from which the kernel gives ports
// to clients (32768 up), so that no connection going out can have one.
const (
	firstPort = 10000
	lastPort  = 31999
)

// reserved are the reservations of our ports, held until the process ends.
var reserved struct {
	sync.Mutex
	names []net.PacketConn
}

// FreePorts are n TCP ports of 127.0.0.1 that nobody uses. They are ours until
// this process ends, among all processes that ask here: Envoy binds with
// SO_REUSEPORT, so two of them at one port would share its connections and
// nobody would be told.
func FreePorts(n int) ([]int, error) {
	reserved.Lock()
	defer reserved.Unlock()
	var ports []int
	const all = lastPort - firstPort + 1
	for i, start := 0, rand.IntN(all); i < all && len(ports) < n; i++ {
		port := firstPort + (start+i*7)%all
		name, err := reserve(port)
		if err != nil {
			continue
		}
		reserved.names = append(reserved.names, name)
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("ports: only %d of %d are free from %d to %d", len(ports), n, firstPort, lastPort)
	}
	return ports, nil
}

// reserve takes a free port's name: an abstract socket, which one process of a
// network namespace can have, as a port, and which goes with it.
func reserve(port int) (net.PacketConn, error) {
	name, err := net.ListenPacket("unixgram", "@aether-port-"+strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, errors.Join(err, name.Close())
	}
	return name, l.Close()
}
