package web

import (
	"context"
	"log/slog"
)

// dropInfoLines drops the toolkit's info lines, because the daemon itself logs its address.
func dropInfoLines(l *slog.Logger) *slog.Logger { return slog.New(warnHandler{l.Handler()}) }

// warnHandler is a slog.Handler that passes on warnings and errors only.
type warnHandler struct{ slog.Handler }

func (h warnHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnHandler{h.Handler.WithAttrs(attrs)}
}

func (h warnHandler) WithGroup(name string) slog.Handler {
	return warnHandler{h.Handler.WithGroup(name)}
}
