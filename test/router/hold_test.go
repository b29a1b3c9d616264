package router

import (
	"io"
	"net"
	"time"
)

// hold opens a proxied TCP connection and proves that it flows.
func (p *pod) hold() net.Conn {
	p.Helper()
	c, err := net.DialTimeout("tcp", p.target().TCP, patience)
	check(p.T, err)
	p.Cleanup(func() { c.Close() })
	check(p.T, c.SetDeadline(time.Now().Add(patience)))
	p.flows(c)
	return c
}

func (p *pod) flows(c net.Conn) {
	p.Helper()
	_, err := c.Write([]byte("x"))
	check(p.T, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	check(p.T, err)
}
