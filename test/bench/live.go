package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// patience bounds every wait; a busy machine is slow.
const patience = 30 * time.Second

// awaitLive returns when a fresh /server_info says LIVE at the epoch. Both
// sides are judged by it, in the same way, with the same cost for Envoy.
func awaitLive(ctx context.Context, admin string, epoch int, poll time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := "nothing answered"
	for {
		who, err := ask(admin)
		switch {
		case err != nil:
			last = err.Error()
		case who.State == "LIVE" && who.Options.Epoch == epoch:
			return nil
		default:
			last = fmt.Sprintf("%s at epoch %d", who.State, who.Options.Epoch)
		}
		if pause(ctx, poll) != nil {
			return fmt.Errorf("epoch %d is not LIVE on %s (%s): %w", epoch, admin, last, context.Cause(ctx))
		}
	}
}

type serverInfo struct {
	State   string `json:"state"`
	Options struct {
		Epoch int `json:"restart_epoch"`
	} `json:"command_line_options"`
}

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
	return who, json.NewDecoder(resp.Body).Decode(&who)
}
