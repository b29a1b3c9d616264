// Command chart packs a Helm chart as `helm package` does, but with the same
// bytes each time: files sorted, without times and owners.
//
//	chart -o NAME.tgz Chart.yaml values.yaml templates/a.yaml ...
//
// The files' paths have to contain the chart's directory, which is where
// Chart.yaml is; the archive has them below the chart's name.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "", "write to `file`")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, files), f.Close())
}

// pack writes the archive. The chart's name is that of Chart.yaml's directory.
func pack(w io.Writer, files []string) error {
	i := slices.IndexFunc(files, func(file string) bool { return filepath.Base(file) == "Chart.yaml" })
	if i < 0 {
		return errors.New("no Chart.yaml among the files")
	}
	dir := filepath.Dir(files[i])
	for _, file := range files {
		if !strings.HasPrefix(file, dir+string(filepath.Separator)) {
			return fmt.Errorf("%s is not below %s", file, dir)
		}
	}
	zip := gzip.NewWriter(w) // its header has no time unless one is set
	archive := tar.NewWriter(zip)
	for _, file := range slices.Sorted(slices.Values(files)) {
		name := filepath.Join(filepath.Base(dir), strings.TrimPrefix(file, dir))
		if err := add(archive, name, file); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

func add(archive *tar.Writer, name, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = archive.Write(data)
	return err
}
