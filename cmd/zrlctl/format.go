package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math"
	"strconv"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// formatter returns a function that writes a message in the given format.
func formatter(name string) (func(io.Writer, []byte) error, error) {
	switch name {
	case "raw":
		return func(w io.Writer, data []byte) error {
			_, err := w.Write(data)
			return err
		}, nil
	case "hex":
		return writeHex, nil
	case "int":
		return wordFormatter(func(line []byte,
			word uint32) []byte {
			return strconv.AppendInt(line, int64(int32(word)), 10)
		}), nil
	case "float":
		return wordFormatter(func(line []byte, word uint32) []byte {
			return strconv.AppendFloat(line, float64(math.Float32frombits(word)), 'g', -1, 32)
		}), nil
	}
	return nil, usageErrorf("--format %q: must be hex, int, float or raw", name)
}

// wordFormatter returns a function that writes a line for each word.
func wordFormatter(format func(line []byte, word uint32) []byte) func(io.Writer, []byte) error {
	return func(w io.Writer, data []byte) error {
		buffered := bufio.NewWriter(w)
		var line []byte
		for ; len(data) >= protocol.WordLen; data = data[protocol.WordLen:] {
			line = append(format(line[:0], binary.LittleEndian.Uint32(data)), '\n')
			_, _ = buffered.Write(line) // Flush returns its error
		}
		return buffered.Flush()
	}
}

// hexLineBytes is the number of bytes in a line of hex.
const hexLineBytes = 32

// writeHex writes the bytes in wire order.
func writeHex(w io.Writer, data []byte) error {
	buffered := bufio.NewWriter(w)
	for len(data) > 0 {
		n := min(len(data), hexLineBytes)
		for off := 0; off < n; off += protocol.WordLen {
			end := " "
			if off+protocol.WordLen >= n {
				end = "\n"
			}
			// Flush returns the error.
			_, _ = buffered.WriteString(hex.EncodeToString(data[off:min(off+protocol.WordLen, n)]) + end)
		}
		data = data[n:]
	}
	return buffered.Flush()
}
