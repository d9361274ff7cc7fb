package standin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"go.uber.org/zap"
)

// maxLineBytes is the maximum number of bytes logged from one line of a program's standard error.
const maxLineBytes = 1024

// logLines logs a program's standard error line by line until the program closes it.
func logLines(r io.Reader, log *zap.Logger) {
	br := bufio.NewReaderSize(r, maxLineBytes)
	for {
		line, err := br.ReadSlice('\n')
		text := strings.ToValidUTF8(string(bytes.TrimRight(line, "\r\n")), "\uFFFD")
		cut := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) { // skip the rest of the line
			_, err = br.ReadSlice('\n')
		}
		switch {
		case cut:
			log.Info("program output", zap.String("line", text), zap.Int("cut_after_bytes", maxLineBytes))
		case len(line) > 0:
			log.Info("program output", zap.String("line", text))
		}
		if err != nil {
			return
		}
	}
}
