package daemon

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/testkit/configmap"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestWatch checks which changes of files cause a reload, and when.
func TestWatch(t *testing.T) {
	v := configmap.New(t, t.TempDir(), map[string]string{"z.yaml": "1", "key.pem": "1"})
	path := v.Path("z.yaml")
	plain, secured := new(config.Config), &config.Config{TLS: &config.TLS{Key: v.Path("key.pem")}}
	w := NewConfigWatch(path, time.Second)
	polls := func(cfg *config.Config, want ...bool) {
		t.Helper()
		for i, want := range want {
			if got := w.poll(cfg); got != want {
				t.Fatalf("poll %d is %v", i+1, got)
			}
		}
	}
	update := func(text, key string) { v.Update(map[string]string{"z.yaml": text, "key.pem": key}) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rename := func(from, to string) { must(os.Rename(v.Path(from), v.Path(to))) }
	write := func(name, text string) { must(os.WriteFile(v.Path(name), []byte(text), 0o600)) }
	polls(plain, false, false, false)
	update("2", "1")
	polls(plain, false, true)
	w.beginLoad(plain)
	polls(plain, false, false)

	update("3", "1") // a change in every interval is not complete
	polls(plain, false)
	update("4", "1")
	polls(plain, false)
	update("5", "1")
	polls(plain, false, true)
	w.beginLoad(plain)

	rename("..data", "moved") // the file is missing, and returns unchanged
	polls(plain, false, true)
	w.beginLoad(plain)
	polls(plain, false)
	rename("moved", "..data")
	polls(plain, false, true)
	w.beginLoad(plain)

	write("z.yaml", "written in place")
	polls(plain, false, true)
	w.beginLoad(plain)

	polls(secured, false, true) // a reload named the key
	w.beginLoad(secured)
	polls(secured, false, false)
	write("key.pem", "another key")
	polls(secured, false, true)
	polls(plain, false, true) // until the next load
}

// TestWatchBeforeLoad checks that changes between the start of the watch and the first poll are not missed.
func TestWatchBeforeLoad(t *testing.T) {
	v := configmap.New(t, t.TempDir(), map[string]string{"z.yaml": "1", "key.pem": "1"})
	cfg := &config.Config{TLS: &config.TLS{Key: v.Path("key.pem")}}
	for _, changed := range []string{"z.yaml", "key.pem"} {
		w := NewConfigWatch(v.Path("z.yaml"), time.Second)
		w.addFiles(cfg)
		if err := os.WriteFile(v.Path(changed), []byte("a change of "+changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if w.poll(cfg); !w.poll(cfg) {
			t.Errorf("the change of %s was missed", changed)
		}
	}
}

// TestWatchedConfiguration replaces the configuration as Kubernetes does while messages are exchanged: the daemon
// reloads it, once for each change, and every message arrives.
func TestWatchedConfiguration(t *testing.T) {
	c := newCluster(t)
	ranks := append(echoes(1, ""), "peer: fpga")
	text := func(remote int) string {
		return strings.Replace(c.yaml("", ranks...), c.addr(2), c.addr(remote), 1)
	}
	v := configmap.New(t, t.TempDir(), map[string]string{"z.yaml": text(2)})
	path := v.Path("z.yaml")
	r := startWith(t, text(2), func(o *Options) {
		o.Watch = NewConfigWatch(path, time.Millisecond)
		o.ConfigSource, o.LoadConfig = path, func() (*config.Config, error) { return config.Load(path) }
	})
	stop, delivered, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { result <- r.exchange(t, delivered, stop) }()
	updates := []struct{ text, log, address string }{
		{text(3), "configuration reloaded", c.addr(3)},
		{text(4), "configuration reloaded", c.addr(4)},
		{"rank: no", "configuration refused", c.addr(4)},
		{text(5) + "http: {listen: 127.0.0.1:1}\n", "configuration refused", c.addr(4)},
		{c.yaml("attach: {socket: /nowhere/a.sock}", ranks...), "a restart is needed", c.addr(4)},
		{text(5), "configuration reloaded", c.addr(5)},
	}
	for i, update := range updates {
		v.Update(map[string]string{"z.yaml": update.text})
		if line := r.loaded(t, i+1); !strings.Contains(line, update.log) {
			t.Errorf("update %d: the log says %q, want %q", i+1, line, update.log)
		}
		if got := r.Status().Cluster[2].Address; got != update.address {
			t.Errorf("update %d: rank 2 is at %s, want %s", i+1, got, update.address)
		}
		if good, _ := r.lastReload(); good != strings.HasSuffix(update.log, "reloaded") {
			t.Errorf("update %d: the reload is reported as successful: %v", i+1, good)
		}
		<-delivered
	}
	close(stop)
	if err := <-result; err != nil {
		t.Error(err)
	}
	if n := strings.Count(r.log.String(), loadedText); n != len(updates) {
		t.Errorf("%d loads for %d changes:\n%s", n, len(updates), r.log)
	}
}

// loadedText is the common part of the log's lines about a load.
const loadedText = "configuration re"

// loaded waits for the n-th line about a load, and returns it.
func (r *running) loaded(t *testing.T, n int) string {
	t.Helper()
	for late := time.After(testTimeout); ; {
		if lines := strings.SplitAfterN(r.log.String(), loadedText, n+1); len(lines) > n {
			line, _, _ := strings.Cut(lines[n], "\n")
			return loadedText + line
		}
		select {
		case <-r.log.grew:
		case <-late:
			t.Fatalf("the log has fewer than %d loads:\n%s", n, r.log)
		}
	}
}

// exchange sends messages to rank 1, which returns them, until stop is closed. It offers a value to delivered after
// each.
func (r *running) exchange(t *testing.T, delivered chan<- struct{}, stop <-chan struct{}) error {
	data, buf := pattern(1000), make([]byte, 4000)
	engine := r.findRank(0).Engine
	for n := 0; ; n++ {
		if _, err := engine.Send(within(t), 1, data, mpe.Options{}); err != nil {
			close(delivered)
			return fmt.Errorf("message %d: %w", n, err)
		}
		if _, err := engine.Recv(within(t), 1, buf, mpe.Options{}); err != nil || !bytes.Equal(buf, data) {
			close(delivered)
			return fmt.Errorf("answer %d: %w, the same data %v", n, err, bytes.Equal(buf, data))
		}
		select {
		case delivered <- struct{}{}:
		case <-stop:
			return nil
		default:
		}
	}
}
