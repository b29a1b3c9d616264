package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// patience bounds every wait; a busy machine is slow.
const patience = 30 * time.Second

// unaskedFor is how long nobody is asked: no Envoy is LIVE as soon (fact 8),
// and each answer takes the parent 1 ms of a CPU that the restart wants.
const unaskedFor = 20 * time.Millisecond

// awaitLive returns when a fresh /server_info says LIVE at the epoch. Both
// sides are judged by it, in the same way, with the same cost for Envoy.
func awaitLive(ctx context.Context, admin string, epoch int, poll time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := "nothing answered"
	if err := pause(ctx, unaskedFor); err != nil {
		return err
	}
	for {
		who, err := ask(admin)
		switch {
		case err != nil:
			last = err.Error()
		case who.State == "LIVE" && who.Epoch == epoch:
			return nil
		default:
			last = fmt.Sprintf("%s at epoch %d", who.State, who.Epoch)
		}
		if pause(ctx, poll) != nil {
			return fmt.Errorf("epoch %d is not LIVE on %s (%s): %w", epoch, admin, last, context.Cause(ctx))
		}
	}
}

type serverInfo struct {
	State string
	Epoch int
}

var (
	stateMember = regexp.MustCompile(`"state":\s*"(\w+)"`)
	epochMember = regexp.MustCompile(`"restart_epoch":\s*(\d+)`)
)

// ask uses a connection of its own: a draining parent goes on to answer LIVE
// on those it has.
func ask(admin string) (who serverInfo, err error) {
	conn, err := net.DialTimeout("tcp", admin, time.Second)
	if err != nil {
		return who, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	req, err := http.NewRequest(http.MethodGet, "http://envoy/server_info", nil)
	if err != nil {
		return who, err
	}
	req.Close = true
	if err := req.Write(conn); err != nil {
		return who, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return who, err
	}
	defer resp.Body.Close()
	return parseInfo(resp.Body)
}

// parseInfo looks at the head alone: the other 120 kB list extensions.
func parseInfo(body io.Reader) (who serverInfo, err error) {
	head, err := io.ReadAll(io.LimitReader(body, 8<<10))
	if err != nil {
		return who, err
	}
	state, epoch := stateMember.FindSubmatch(head), epochMember.FindSubmatch(head)
	if state == nil || epoch == nil {
		return who, errors.New("the answer has no state or no restart_epoch")
	}
	who.State = string(state[1])
	who.Epoch, err = strconv.Atoi(string(epoch[1]))
	return who, err
}
