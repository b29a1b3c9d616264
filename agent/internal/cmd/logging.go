package cmd

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// newLogger logs to w: JSON for machines, text for a terminal, unless format
// ("json", "text", "auto") says which. Level is a checked word; what is returned
// changes it.
func newLogger(w io.Writer, format, level string, terminal bool) (*slog.Logger, *slog.LevelVar) {
	least := new(slog.LevelVar)
	_ = least.UnmarshalText([]byte(level))
	options := &slog.HandlerOptions{Level: least}
	if format == "text" || format == "auto" && terminal {
		return slog.New(slog.NewTextHandler(w, options)), least
	}
	return slog.New(slog.NewJSONHandler(w, options)), least
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
