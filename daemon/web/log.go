package web

import (
	"bytes"
	"context"
	"log/slog"
)

// quiet drops what the toolkit says at level info: the daemon itself tells where it
// listens.
func quiet(l *slog.Logger) *slog.Logger { return slog.New(warnings{l.Handler()}) }

type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.Handler.WithAttrs(attrs)}
}

func (h warnings) WithGroup(name string) slog.Handler { return warnings{h.Handler.WithGroup(name)} }

// levelWriter takes the lines of a log without levels, which are not worth more than
// debug.
type levelWriter struct{ log *slog.Logger }

func (w levelWriter) Write(line []byte) (int, error) {
	w.log.Debug("http: " + string(bytes.TrimSpace(line)))
	return len(line), nil
}
