package udp

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

func TestOffloadIsDisabled(t *testing.T) {
	m := transporttest.Map(t, 1)
	for _, tt := range []struct {
		env       string
		noOffload bool
		off       bool
	}{
		{"", false, false},
		{"auto", false, false},
		{"off", false, true},
		{"", true, true},
		{"auto", true, true},
	} {
		t.Setenv(EnvOffload, tt.env)
		c, err := Listen(Config{Map: m, NoOffload: tt.noOffload})
		if err != nil {
			t.Fatal(err)
		}
		o := c.Offload()
		if o.Off != tt.off || o.Off && (o.Segments || o.Coalesces) || o.Refused != nil {
			t.Errorf("%s=%s, NoOffload %v: %+v", EnvOffload, tt.env, tt.noOffload, o)
		}
		c.Close()
	}
	t.Setenv(EnvOffload, "no")
	if c, err := Listen(Config{Map: m}); err == nil ||
		!strings.Contains(err.Error(), `ZRLMPI_OFFLOAD: "no" is not known: use auto or off`) {
		t.Errorf("got %v, %v", c, err)
	}
}

// TestOffloadOfAPlainSocket checks that a socket that makes one system call per datagram reports no offload.
func TestOffloadOfAPlainSocket(t *testing.T) {
	c, err := listen(Config{Map: transporttest.Map(t, 1)}, sockets["plain"])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if o := c.Offload(); o.Batches || o.Segments || o.Coalesces || o.Refused != nil {
		t.Errorf("%+v", o)
	}
}
