package daemon

import (
	"io/fs"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
)

// ConfigWatch detects changes of the configuration's files: the file itself, and the TLS files that it names. It polls,
// because the directories above a file can change as well: Kubernetes replaces all files of a volume at once by
// renaming a symbolic link to their directory.
type ConfigWatch struct {
	path     string
	interval time.Duration

	mu sync.Mutex
	// loaded has the versions of the files at the most recent load, observed those at the most recent poll. A missing
	// file is nil.
	loaded, observed map[string]fs.FileInfo
}

// NewConfigWatch returns a watch of the file at path, which the daemon polls at every interval. The caller must load
// the configuration afterwards, so that no change is missed.
func NewConfigWatch(path string, interval time.Duration) *ConfigWatch {
	return &ConfigWatch{path: path, interval: interval, loaded: map[string]fs.FileInfo{path: statFile(path)}}
}

// statFile returns the version of a file, or nil if the file cannot be found.
func statFile(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func isSameVersion(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// versions returns the present versions of the files of a configuration.
func (w *ConfigWatch) versions(cfg *config.Config) map[string]fs.FileInfo {
	files := map[string]fs.FileInfo{w.path: statFile(w.path)}
	if t := cfg.TLS; t != nil {
		for _, path := range []string{t.Certificate, t.Key, t.Authority} {
			files[path] = statFile(path)
		}
	}
	return files
}

// addFiles adds the TLS files of a configuration before they are loaded for the first time.
func (w *ConfigWatch) addFiles(cfg *config.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := w.versions(cfg)
	delete(files, w.path)
	maps.Copy(w.loaded, files)
}

// beginLoad notes the versions of the files. The caller must load them afterwards. cfg is the current configuration.
func (w *ConfigWatch) beginLoad(cfg *config.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loaded = w.versions(cfg)
}

// poll reports whether the files differ from the loaded ones. A change is reported at the second poll, and only if the
// files have not changed in between, because they may still be being written.
func (w *ConfigWatch) poll(cfg *config.Config) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous := w.observed
	w.observed = w.versions(cfg)
	return maps.EqualFunc(w.observed, previous, isSameVersion) && !maps.EqualFunc(w.observed, w.loaded, isSameVersion)
}
