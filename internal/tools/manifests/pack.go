package manifests

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// PackChart writes a package of the chart in folder, as "helm package" does, into another folder, and returns its path.
// The chart and the image have the given version. Unlike with Helm, the bytes depend only on the arguments and the
// chart.
func PackChart(folder, into, version string, date time.Time) (path string, err error) {
	packed, err := loader.LoadDir(folder)
	if err != nil {
		return "", err
	}
	version = strings.ReplaceAll(strings.TrimPrefix(version, "v"), "~", "-")
	if _, err := semver.StrictNewVersion(version); err != nil { // for example, a commit
		version = "0.0.0-" + version
	}
	packed.Metadata.Version, packed.Metadata.AppVersion = version, version
	if err := packed.Validate(); err != nil {
		return "", err
	}
	metadata, err := yaml.Marshal(packed.Metadata)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	slices.SortFunc(packed.Raw, func(a, b *chart.File) int { return cmp.Compare(a.Name, b.Name) })
	for _, file := range packed.Raw {
		data := file.Data
		if file.Name == chartutil.ChartfileName {
			data = metadata
		}
		header := &tar.Header{Name: packed.Name() + "/" + file.Name, Mode: 0o644, Size: int64(len(data)), ModTime: date}
		if err := archive.WriteHeader(header); err != nil {
			return "", err
		}
		if _, err := archive.Write(data); err != nil {
			return "", err
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return "", err
	}
	path = filepath.Join(into, fmt.Sprintf("%s-%s.tgz", packed.Name(), version))
	return path, os.WriteFile(path, text.Bytes(), 0o644)
}
