package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command runs the program as main does.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, func() {}, args, &out, &err)
	return code, out.String(), err.String()
}

func addresses(t *testing.T) []string {
	t.Helper()
	s, err := upstream.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return []string{"-http", s.HTTP, "-tcp", s.TCP, "-stream", "100ms", "-timeout", "20s"}
}

func TestARunWithoutFailures(t *testing.T) {
	code, out, errs := command(t.Context(), append(addresses(t), "-duration", "1100ms")...)
	if code != exitOK || !strings.HasPrefix(out, "KIND") || !strings.Contains(errs, " ok/s") {
		t.Errorf("code %d\n%s\n%s", code, out, errs)
	}
}

func TestFailuresAreAnExitCodeAndJSON(t *testing.T) {
	ports, err := bootstrap.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	args := append(addresses(t), "-duration", "300ms", "-json", "-kinds", "tcp,new", "-http", fmt.Sprintf("127.0.0.1:%d", ports[0]))
	code, out, errs := command(t.Context(), args...)
	var r load.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	if code != exitFailures || len(r.Kinds) != 2 || r.Kind(load.New, false).Refused == 0 || r.Kind(load.TCP, false).OK == 0 {
		t.Errorf("code %d\n%s", code, r.Table())
	}
}

func TestASignalEndsTheRunInGoodOrder(t *testing.T) {
	ctx, signal := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer signal()
	code, out, _ := command(ctx, append(addresses(t), "-duration", "0", "-stream", "1s")...)
	if code != exitOK || strings.Contains(out, "abandoned") {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestUsage(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.pem")
	if err := os.WriteFile(garbage, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUsage, "no kinds"},
		{"-h", exitOK, "Usage:"},
		{"-nonsense", exitUsage, "not defined"},
		{"-http 127.0.0.1:1 more", exitUsage, `unexpected argument "more"`},
		{"-http here", exitUsage, "here"},
		{"-http 127.0.0.1:1 -kinds tcp", exitUsage, `no kind "tcp"`},
		{"-http 127.0.0.1:1 -scale 0", exitUsage, "-scale 0"},
		{"-ca /missing", exitUsage, "-ca:"},
		{"-ca " + garbage, exitUsage, "no PEM certificate"},
	} {
		code, _, errs := command(t.Context(), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: code %d, want %d\n%s", c.args, code, c.code, errs)
		}
	}
}

func TestTheFlagsMakeThePlan(t *testing.T) {
	certificate, err := bootstrap.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(strings.Fields("-https a:1 -ca "+certificate.CAPath+" -kinds new,h2 -scale 2 -strict -timeout 3s -stream 4s -bucket 1s -duration 0 -json"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p := o.plan
	if len(p.Kinds) != 2 || p.Kinds[0].Rate != 60 || p.Kinds[1].Kind != load.H2 || !p.RootCAs.Equal(certificate.Pool) {
		t.Errorf("%+v", p)
	}
	if !p.Strict || p.Timeout != 3*time.Second || p.StreamDuration != 4*time.Second || p.Bucket != time.Second || !o.json || o.duration != 0 {
		t.Errorf("%+v", o)
	}
}

func TestTheUpstreamAlone(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	read, write := io.Pipe()
	done := make(chan int)
	go func() { done <- run(ctx, func() {}, []string{"-serve"}, write, io.Discard) }() // joined below
	line := make([]byte, 64)
	n, err := read.Read(line)
	if err != nil || !strings.HasPrefix(string(line[:n]), "http 127.0.0.1:") {
		t.Errorf("%q, %v", line[:n], err)
	}
	signal()
	if code := <-done; code != exitOK {
		t.Errorf("code %d", code)
	}
}

func TestOverrunsAreAnExitCodeOfTheirOwn(t *testing.T) {
	r := load.Report{Kinds: []load.KindReport{{Overrun: 1}}}
	if code := finish(r, false, io.Discard, io.Discard); code != exitOverrun {
		t.Errorf("code %d", code)
	}
	r.Kinds[0].Failed = 1
	if code := finish(r, false, io.Discard, io.Discard); code != exitFailures {
		t.Errorf("code %d", code)
	}
}
