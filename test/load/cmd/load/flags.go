package main

import (
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"aether.internal/test/load"
)

type options struct {
	plan     load.Plan
	duration time.Duration
	json     bool
	serve    bool
}

const usage = `Usage: load -http ADDR [-https ADDR] [-tcp ADDR] [-tls ADDR] [flags]
       load -serve            run only the upstream server

Puts mixed, open-loop load on the listeners of an Envoy and counts each kind apart.
Exit code: 0 all well, 1 an operation failed, 2 usage, 3 the load fell behind its plan.

`

func parse(args []string, stderr io.Writer) (options, error) {
	var (
		o                      options
		t                      load.Target
		ca, kinds              string
		rate                   float64
		set                    = flag.NewFlagSet("load", flag.ContinueOnError)
		timeout, streams, fine time.Duration
		strict                 bool
	)
	set.SetOutput(stderr)
	set.Usage = func() { fmt.Fprint(stderr, usage); set.PrintDefaults() }
	set.StringVar(&t.HTTP, "http", "", "`host:port` of HTTP/1.1 and HTTP/2 without TLS")
	set.StringVar(&t.HTTPS, "https", "", "`host:port` of the same with TLS")
	set.StringVar(&t.TCP, "tcp", "", "`host:port` of proxied TCP")
	set.StringVar(&t.TLS, "tls", "", "`host:port` of proxied TCP with TLS")
	set.StringVar(&ca, "ca", "", "PEM `file` of the CA to trust")
	set.BoolVar(&t.InsecureSkipVerify, "insecure", false, "trust any certificate")
	set.StringVar(&kinds, "kinds", "", "only these, `comma separated`: new,keep-alive,stream,upload,h2,h2-stream,grpc,tcp,tcp-hold")
	set.Float64Var(&rate, "scale", 1, "multiply every rate by this `factor`")
	set.DurationVar(&o.duration, "duration", 10*time.Second, "of the load; 0: until a signal")
	set.DurationVar(&streams, "stream", 2*time.Second, "length of the long kinds' streams")
	set.DurationVar(&timeout, "timeout", 5*time.Second, "of an operation, beyond its stream")
	set.DurationVar(&fine, "bucket", 100*time.Millisecond, "width of a point of the JSON timeline")
	set.BoolVar(&strict, "strict", false, "a permitted retry is a failure")
	set.BoolVar(&o.json, "json", false, "print the report as JSON")
	set.BoolVar(&o.serve, "serve", false, "run only the upstream server and print its addresses")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	var err error
	if t.RootCAs, err = pool(ca); err != nil {
		return o, err
	}
	o.plan = load.DefaultPlan(t)
	o.plan.Timeout, o.plan.StreamDuration, o.plan.Bucket, o.plan.Strict = timeout, streams, fine, strict
	o.plan.Kinds, err = choose(o.plan.Kinds, kinds, rate)
	return o, err
}

func choose(all []load.KindPlan, only string, scale float64) ([]load.KindPlan, error) {
	if scale <= 0 {
		return nil, fmt.Errorf("-scale %g: want more than 0", scale)
	}
	for i := range all {
		all[i].Rate *= scale
	}
	if only == "" {
		return all, nil
	}
	var some []load.KindPlan
	for name := range strings.SplitSeq(only, ",") {
		n := len(some)
		for _, k := range all {
			if k.Kind == name {
				some = append(some, k)
			}
		}
		if len(some) == n {
			return nil, fmt.Errorf("-kinds: no kind %q for the listeners given", name)
		}
	}
	return slices.Clip(some), nil
}

func pool(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("-ca %s: no PEM certificate in it", path)
	}
	return p, nil
}
