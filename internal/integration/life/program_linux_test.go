package life

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
)

// Environment variables of a process that runs program.
const (
	programSocket = "ZRLMPI_TEST_LIFE_SOCKET"
	programRank   = "ZRLMPI_TEST_LIFE_RANK"
)

// program attaches to a rank and echoes every message until it is killed or its rank ends.
func program(socket string) {
	go func() { // exit with the parent
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	rank, err := strconv.Atoi(os.Getenv(programRank))
	var c *attach.Client
	if err == nil {
		c, err = attach.Dial(context.Background(), socket, rank)
		for errors.Is(err, attach.ErrBusy) { // until the daemon notices that the previous program is gone
			pause(context.Background(), time.Millisecond)
			c, err = attach.Dial(context.Background(), socket, rank)
		}
	}
	if err == nil {
		fmt.Println("attached")
		err = echo(context.Background(), c)
	}
	fmt.Println(err)
	os.Exit(1)
}

// echo echoes every message until ctx or the device ends. The first word of a message is the tag of its echo. echo
// ignores errors of single messages, which their senders notice.
func echo(ctx context.Context, d mpe.Device) error {
	buf := make([]byte, maxMessage)
	for {
		st, err := operate(ctx, d, mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: tagRequest, Buf: buf})
		if err == nil {
			tag := int(binary.LittleEndian.Uint32(buf))
			_, err = operate(ctx, d,
				mpe.Operation{Kind: mpe.OpSend, Peer: st.Peer, Tag: tag, Comm: commReplies, Buf: buf[:st.Bytes]})
		}
		if ctx.Err() != nil || errors.Is(err, mpe.ErrClosed) {
			return err
		}
	}
}

// operate posts an operation and waits for it.
func operate(ctx context.Context, d mpe.Device, op mpe.Operation) (mpe.Status, error) {
	o, err := d.Start(op)
	if err != nil {
		return mpe.Status{}, err
	}
	defer o.Free()
	st, err := o.Await(ctx)
	return *st, err
}
