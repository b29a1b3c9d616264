package cmd

import (
	"context"
	"log/slog"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// supervise is the supervisor itself; no metrics yet.
func supervise(ctx context.Context, cfg hotrestart.Config, log *slog.Logger) error {
	return hotrestart.New(cfg, log, nil).Run(ctx)
}
