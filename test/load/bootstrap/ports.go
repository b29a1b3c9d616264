package bootstrap

import (
	"fmt"
	"net"
)

// FreePorts returns n different loopback TCP ports that are free now. They are
// held until all are known, then released: somebody else may take one before
// Envoy does, which Envoy reports.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("free port: %w", err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
