package dist

import (
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOMs writes the software bill of materials of each artifact: its programs, and the modules that they contain.
func (r *Release) writeSBOMs(context.Context) error {
	for _, each := range r.artifacts {
		bom, err := r.SBOM(each.name, each.programs)
		if err != nil {
			return fmt.Errorf("SBOM of %s: %w", each.name, err)
		}
		out, err := os.Create(r.file(each.name + ".cdx.json"))
		if err != nil {
			return err
		}
		if err := errors.Join(cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom),
			out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// SBOM returns the software bill of materials of an artifact. It reads the modules that the Go linker has recorded in
// the programs, and knows their licenses from r.Modules.
func (r *Release) SBOM(name string, programs []string) (*cdx.BOM, error) {
	sum, err := sha256File(r.file(name))
	if err != nil {
		return nil, err
	}
	bom := cdx.NewBOM()
	// By its contents, so that it is the same in every build.
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%s-%s-5%s-8%s-%s", sum[:8], sum[8:12], sum[13:16], sum[17:20], sum[20:32])
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.Time.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: name, Type: cdx.ComponentTypeFile, Name: name, Version: r.FileVersion(),
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}, Licenses: licenses("Apache-2.0")},
	}
	if strings.HasSuffix(name, "_image.tar") {
		bom.Metadata.Component.Type = cdx.ComponentTypeContainer
	}
	known := map[string]Module{}
	for _, m := range r.Modules {
		known[m.Path+"@"+m.Version] = m
	}
	var components []cdx.Component
	added := map[string]bool{}
	var contained []string
	var dependencies []cdx.Dependency
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, err
		}
		component := r.programComponent(program, info)
		components = append(components, component)
		contained = append(contained, component.BOMRef)
		var linked []string
		for _, dep := range append([]*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}},
			info.Deps...) {
			if dep.Replace != nil {
				continue // the project's own module
			}
			m, ok := known[dep.Path+"@"+dep.Version]
			if !ok {
				return nil, fmt.Errorf("%s: module %s@%s is not in the copyright file", program, dep.Path, dep.Version)
			}
			reference := modulePURL(dep)
			if linked = append(linked, reference); added[reference] {
				continue
			}
			added[reference] = true
			c := cdx.Component{BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: dep.Path, Version: dep.Version,
				PackageURL: reference, Licenses: licenses(m.License), Copyright: strings.Join(m.Copyright, "\n")}
			if hash, ok := strings.CutPrefix(dep.Sum, "h1:"); ok {
				data, err := base64.StdEncoding.DecodeString(hash)
				if err != nil {
					return nil, fmt.Errorf("%s: sum of module %s: %w", program, dep.Path, err)
				}
				c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(data)}}
			}
			components = append(components, c)
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: component.BOMRef, Dependencies: &linked})
	}
	dependencies = append(dependencies, cdx.Dependency{Ref: name, Dependencies: &contained})
	bom.Components, bom.Dependencies = &components, &dependencies
	return bom, nil
}

// programComponent returns the component of a program.
func (r *Release) programComponent(program string, info *buildinfo.BuildInfo) cdx.Component {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	name := filepath.Base(program)
	return cdx.Component{
		BOMRef: fmt.Sprintf("%s-%s-%s", name, settings["GOOS"], settings["GOARCH"]), Type: cdx.ComponentTypeApplication,
		Name: name, Version: r.FileVersion(), Licenses: licenses("Apache-2.0"),
		PackageURL: fmt.Sprintf("pkg:golang/%s@%s?goos=%s&goarch=%s", info.Path, r.Version, settings["GOOS"],
			settings["GOARCH"]),
	}
}

// modulePURL returns the package URL of a module.
func modulePURL(m *debug.Module) string {
	version := m.Version
	return "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// licenses returns an SPDX expression as CycloneDX's choice of licenses.
func licenses(expression string) *cdx.Licenses {
	if strings.Contains(expression, " ") {
		return &cdx.Licenses{{Expression: strings.ReplaceAll(expression, " and ", " AND ")}}
	}
	return &cdx.Licenses{{License: &cdx.License{ID: expression}}}
}
