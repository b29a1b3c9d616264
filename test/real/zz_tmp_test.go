package real

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aether.internal/test/node"
)

func TestZZTmp(t *testing.T) {
	s := newStage(t)
	pids := map[int]int{}
	var mu sync.Mutex
	var out []string
	s.run = &node.Run{Node: s.Node, OnLine: func(l node.Line) {
		var in struct {
			Msg        string
			Epoch, Pid int
		}
		json.Unmarshal([]byte(l.Raw), &in)
		if in.Msg == "newcomer started" {
			pids[in.Epoch] = in.Pid
		}
		if in.Msg == "old epoch is ended" {
			at := time.Now()
			var b strings.Builder
			pidfd, err := unix.PidfdOpen(pids[in.Epoch], 0)
			if err != nil {
				fmt.Fprintln(&b, err)
			}
			dir := fmt.Sprintf("/proc/%d/fd/", pids[in.Epoch])
			es, err := os.ReadDir(dir)
			n := 0
			for _, e := range es {
				l, _ := os.Readlink(dir + e.Name())
				if strings.HasPrefix(l, "socket:[") {
					n++
					num, _ := strconv.Atoi(e.Name())
					fd, err := unix.PidfdGetfd(pidfd, num, 0)
					if err != nil {
						fmt.Fprintln(&b, e.Name(), err)
						continue
					}
					sa, _ := unix.Getsockname(fd)
					pa, perr := unix.Getpeername(fd)
					if in4, ok := sa.(*unix.SockaddrInet4); ok {
						fmt.Fprint(&b, e.Name(), " local ", in4.Port)
						if p4, ok := pa.(*unix.SockaddrInet4); ok {
							fmt.Fprint(&b, " peer ", p4.Port)
						} else {
							fmt.Fprint(&b, " ", perr)
						}
						fmt.Fprintln(&b)
					}
					unix.Close(fd)
				}
			}
			fmt.Fprintln(&b, n, "sockets", err)
			unix.Close(pidfd)
			mu.Lock()
			out = append(out, fmt.Sprintf("END epoch %d pid %d at %s looked until %s:\n%s", in.Epoch, pids[in.Epoch], at.UTC().Format("15:04:05.000"), time.Now().UTC().Format("15:04:05.000"), b.String()))
			mu.Unlock()
		}
	}}
	if err := s.run.Start(s.ctx, "--concurrency", "2", "--parent-shutdown-time", "60s", "--", "--log-path", "/tmp/hs/envoy.log", "--component-log-level", "conn_handler:debug,connection:debug,http:debug,router:debug"); err != nil {
		t.Fatal(err)
	}
	s.await("0", node.Serves(0))
	s.mixed(500 * time.Millisecond)
	quit := make(chan bool)
	for range 40 {
		go func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				t0 := time.Now()
				c, err := net.Dial("tcp", s.Target().HTTP)
				if err != nil {
					t.Log("DIAL", err)
					continue
				}
				t1 := time.Now()
				fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				t2 := time.Now()
				data, err := io.ReadAll(c)
				if len(data) == 0 || err != nil {
					mu.Lock()
					out = append(out, fmt.Sprintf("CUT port %d dial %s dialled %s sent %s ended %s: %d bytes %v", c.LocalAddr().(*net.TCPAddr).Port, t0.UTC().Format("05.000"), t1.UTC().Format("05.000"), t2.UTC().Format("05.000"), time.Now().UTC().Format("05.000"), len(data), err))
					mu.Unlock()
				}
				c.Close()
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
	beat := time.NewTicker(300 * time.Millisecond)
	defer beat.Stop()
	for i := range 50 {
		<-beat.C
		s.writeInPlace(fmt.Sprintf("w%d", i))
	}
	s.awaitTag("w49")
	r := s.load.Stop()
	s.load = nil
	for _, e := range r.Errors {
		t.Log(r.Start.Add(e.Offset).UTC().Format("15:04:05.000"), e.Kind, e.TLS, e.Message)
	}
	for _, l := range s.run.Lines() {
		if strings.Contains(l.Raw, "old epoch is") || strings.Contains(l.Raw, "has ended") || strings.Contains(l.Raw, "epoch serves") {
			t.Log(l.Raw[:min(150, len(l.Raw))])
		}
	}
	close(quit)
	time.Sleep(3 * time.Second)
	s.stop()
	for _, o := range out {
		t.Log(o)
	}
	t.Log(s.Target())
}
