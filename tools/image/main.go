// Image makes container images out of files, without a base image, a daemon or
// a registry; the Bazel rules in defs.bzl run it. The same inputs give the same
// bytes: no clock, user, mode or time of a file goes in.
//
//	image build -spec SPEC -layout DIR -tarball FILE -digest FILE -sbom FILE
//	image index -layout DIR -digest FILE LAYOUT...   # one for several platforms
//	image push LAYOUT REFERENCE...                   # with docker's credentials
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if layout := os.Getenv("IMAGE_PUSH"); layout != "" { // bazel run of an oci_push
		return runPush(ctx, append([]string{layout}, args...))
	}
	if len(args) == 0 {
		return fmt.Errorf("which of build, index and push?")
	}
	switch what, rest := args[0], args[1:]; what {
	case "build":
		return runBuild(rest)
	case "index":
		return runIndex(rest)
	case "push":
		return runPush(ctx, rest)
	default:
		return fmt.Errorf("there is no %q; there are build, index and push", what)
	}
}

func runBuild(args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	spec := flags.String("spec", "", "`file` with what to build, see type spec")
	var out outputs
	flags.StringVar(&out.layout, "layout", "", "`directory` for the OCI layout")
	flags.StringVar(&out.tarball, "tarball", "", "`file` for docker load")
	flags.StringVar(&out.digest, "digest", "", "`file` for the manifest's digest")
	flags.StringVar(&out.sbom, "sbom", "", "`file` for the bill of materials (CycloneDX)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := readSpec(*spec)
	if err != nil {
		return err
	}
	if err := out.write(s); err != nil {
		return fmt.Errorf("%s: %w", s.Tag, err)
	}
	return nil
}

func runIndex(args []string) error {
	flags := flag.NewFlagSet("index", flag.ContinueOnError)
	layout := flags.String("layout", "", "`directory` for the OCI layout")
	digest := flags.String("digest", "", "`file` for the index's digest")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return writeIndex(*layout, *digest, flags.Args())
}
