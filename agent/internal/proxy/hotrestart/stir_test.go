package hotrestart

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWhatStirsIsNoticedAtOnceAndLookedAtCloselyForAWhile(t *testing.T) {
	dir := t.TempDir()
	s := watchStir(slog.New(slog.DiscardHandler), dir)
	defer s.close()
	if s.pause() != lookoutPause {
		t.Error("calm from the beginning")
	}
	s.last = time.Now().Add(-2 * stirred)
	if s.pause() != calmPause {
		t.Error("never calm")
	}
	if err := os.Mkdir(filepath.Join(dir, "seat.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !s.wait(ctx, time.Hour) { // by the event
		t.Fatal("nothing was noticed")
	}
	if s.pause() != lookoutPause {
		t.Error("calm although something stirs")
	}
	cancel()
	if s.wait(ctx, time.Hour) {
		t.Error("it goes on after its end")
	}
}

func TestWithoutEventsItIsLookedAtEachSecond(t *testing.T) {
	s := watchStir(slog.New(slog.DiscardHandler), filepath.Join(t.TempDir(), "none"))
	defer s.close()
	s.last = time.Now().Add(-2 * stirred)
	if s.pause() != lookoutPause || !s.wait(t.Context(), time.Millisecond) {
		t.Error("a change would go unnoticed")
	}
}
