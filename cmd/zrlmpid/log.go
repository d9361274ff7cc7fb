package main

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
)

// newLogger returns a logger that writes to writer as configured, and a handle through which the caller can change the
// logger's level.
func newLogger(log config.Log, writer *daemon.LogWriter) (*zap.Logger, *zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(log.Level)
	if err != nil {
		return nil, nil, fmt.Errorf("log level: %w", err)
	}
	var encoder zapcore.Encoder
	if log.Format == config.FormatJSON {
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	} else {
		ec := zap.NewDevelopmentEncoderConfig()
		ec.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000")
		ec.ConsoleSeparator = "  "
		encoder = zapcore.NewConsoleEncoder(ec)
	}
	out := zapcore.AddSync(writer)
	return zap.New(zapcore.NewCore(encoder, out, level), zap.ErrorOutput(out)), &level, nil
}
