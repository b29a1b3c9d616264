package hotrestart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"aether.internal/agent/internal/proxy/control"
)

// logLevels are the words for the levels that we use.
var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// SetLog sets the least level that is logged from now on, in lower-case letters;
// an empty word only asks. That it was changed is logged whatever the level.
func (s *Supervisor) SetLog(_ context.Context, wish control.LogLevel) (control.LogLevel, error) {
	level := s.cfg.LogLevel
	if level == nil {
		return control.LogLevel{}, errors.New("this supervisor's log level can't be changed")
	}
	was := control.LogLevel{Level: strings.ToLower(level.Level().String())}
	if wish.Level == "" {
		return was, nil
	}
	to, known := logLevels[wish.Level]
	if !known {
		return was, fmt.Errorf("%q is no log level: there are debug, info, warn and error", wish.Level)
	}
	level.Set(min(level.Level(), slog.LevelInfo))
	s.log.Info("the log level is changed", "from", was.Level, "to", wish.Level)
	level.Set(to)
	return wish, nil
}
