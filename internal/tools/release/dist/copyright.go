package dist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module is a Go module, other than the project's, that a program or library is linked from.
type Module struct {
	// Path and Version of the module; for the standard library "std" and the version of Go.
	Path, Version string
	// License is an SPDX expression.
	License string
	// Copyright holds the copyright lines.
	Copyright []string
	// LicenseText is the text of all licenses that apply to the linked packages, except Apache-2.0, and Notices the text
	// of other notices.
	LicenseText, Notices string
}

// ErrLicense is wrapped by errors about a module whose license or copyright is not found or not known.
var ErrLicense = errors.New("unknown license")

// listedPackage is a package as `go list -json` prints it.
type listedPackage struct {
	Dir      string
	Standard bool
	GoFiles  []string
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// LinkedModules returns the modules that the programs and the C library are linked from, on all platforms.
func (r *Release) LinkedModules(ctx context.Context) ([]Module, error) {
	packages := map[string]map[string]listedPackage{} // by module and folder
	list := func(env []string, module, path string) error {
		out, err := run(ctx, env, "go", "-C", module, "list", "-deps", "-json=Dir,Standard,GoFiles,Module", path)
		if err != nil {
			return err
		}
		for decoder := json.NewDecoder(strings.NewReader(out)); ; {
			var p listedPackage
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("go list: %w", err)
			}
			name := "std"
			if !p.Standard {
				if name = p.Module.Path + "@" + p.Module.Version; p.Module.Main || p.Module.Replace != nil {
					continue // the project's
				}
			}
			if packages[name] == nil {
				packages[name] = map[string]listedPackage{}
			}
			packages[name][p.Dir] = p
		}
	}
	for _, p := range r.platforms() {
		for _, each := range p.programs {
			if err := list(p.env(), each.module, each.path); err != nil {
				return nil, err
			}
		}
		if p.os == "linux" {
			if err := list([]string{"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + p.arch}, ".", "./lib"); err != nil {
				return nil, err
			}
		}
	}
	goroot, err := run(ctx, nil, "go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	root, version, _ := strings.Cut(strings.TrimSpace(goroot), "\n")
	var modules []Module
	for name, linked := range packages {
		path, moduleVersion, _ := strings.Cut(name, "@")
		dir := root
		if path == "std" {
			moduleVersion, linked = strings.TrimPrefix(version, "go"), map[string]listedPackage{root: {Dir: root}}
		} else {
			for _, p := range linked {
				dir = p.Module.Dir
			}
		}
		module, err := readNotices(Module{Path: path, Version: moduleVersion}, dir, linked)
		if err != nil {
			return nil, err
		}
		modules = append(modules, module)
	}
	slices.SortFunc(modules, func(a, b Module) int {
		return strings.Compare(a.Path+"@"+a.Version, b.Path+"@"+b.Version)
	})
	return modules, nil
}

var (
	noticeName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)\b`)
	// placeholder matches the lines of the Apache license that are to be filled in by its users.
	placeholder   = regexp.MustCompile(`\[yyyy\]|\{yyyy\}|<year>`)
	copyrightLine = regexp.MustCompile(`(?im)^[ \t/*#"]*((?:[\w ]* )?copyright[ :]*(?:\(c\)|©|\d{4}|the ).*?)[ \t*/]*$`)
)

// readNotices reads the notices in the folders of linked packages, and in the folders above them in the module.
func readNotices(module Module, root string, linked map[string]listedPackage) (Module, error) {
	folders := map[string]bool{}
	for dir := range linked {
		for ; !folders[dir]; dir = filepath.Dir(dir) {
			folders[dir] = true
			if dir == root {
				break
			}
		}
	}
	// A choice of licenses, of which the ones that the project does not choose are not identified.
	choice := filepath.Join(root, "licenses")
	if _, err := os.Stat(choice); err == nil {
		folders[choice] = true
	}
	var licenses []string
	for _, dir := range sorted(folders) {
		files, err := os.ReadDir(dir)
		if err != nil {
			return module, err
		}
		for _, file := range files {
			if file.IsDir() || filepath.Ext(file.Name()) == ".go" ||
				dir != choice && !noticeName.MatchString(file.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, file.Name()))
			if err != nil {
				return module, err
			}
			text := strings.ToValidUTF8(string(data), "?")
			license := identify(text)
			if license == "" && dir == choice {
				continue
			}
			if license != "" && !slices.Contains(licenses, license) {
				licenses = append(licenses, license)
			}
			module.addCopyright(text)
			relative, err := filepath.Rel(root, filepath.Join(dir, file.Name()))
			if err != nil {
				return module, err
			}
			text = relative + ":\n\n" + strings.Trim(text, "\n") + "\n\n"
			switch license {
			case "Apache-2.0": // its text is in the file LICENSE
			case "":
				module.Notices += text
			default:
				module.LicenseText += text
			}
		}
	}
	module.License = strings.Join(licenses, " and ")
	if module.License == "" {
		return module, fmt.Errorf("module %s@%s: %w", module.Path, module.Version, ErrLicense)
	}
	if len(module.Copyright) == 0 {
		// Many modules with the Apache license name their authors in the sources alone.
		for dir, p := range linked {
			for _, file := range p.GoFiles {
				data, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					return module, err
				}
				module.addCopyright(string(data[:min(len(data), 1000)]))
			}
		}
		slices.Sort(module.Copyright)
	}
	if len(module.Copyright) == 0 {
		module.Copyright = []string{"the authors of " + module.Path}
	}
	return module, nil
}

// addCopyright adds the copyright lines of a text.
func (m *Module) addCopyright(text string) {
	for _, match := range copyrightLine.FindAllStringSubmatch(text, -1) {
		line := strings.Join(strings.Fields(match[1]), " ")
		if !placeholder.MatchString(line) && !slices.Contains(m.Copyright, line) {
			m.Copyright = append(m.Copyright, line)
		}
	}
}

// identify returns the SPDX identifier of a license, or "" for another text. It searches for a characteristic phrase of
// each license, because authors wrap and punctuate the same text differently.
func identify(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, each := range []struct{ id, phrase string }{
		{"Apache-2.0", "apache license version 2.0, january 2004"},
		{"OFL-1.1", "sil open font license version 1.1"},
		{"MPL-2.0", "mozilla public license version 2.0"},
		{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
		{"CC-BY-4.0", "creative commons attribution 4.0 international public license"},
		{"FTL", "the freetype project license"},
		{"BSD-3-Clause", "to endorse or promote products"},
		{"BSD-2-Clause", "redistribution and use in source and binary forms"},
	} {
		if strings.Contains(text, each.phrase) {
			return each.id
		}
	}
	return ""
}

// WriteCopyright writes the machine-readable copyright file (DEP-5) for all artifacts: the licenses and notices of the
// project and of all linked modules.
func (r *Release) WriteCopyright(ctx context.Context) (err error) {
	if r.Modules, err = r.LinkedModules(ctx); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"+
		"Upstream-Name: zrlmpid\nSource: %s\nComment:\n"+
		" The programs and libraries are linked from the project's sources (Files: *), and from Go\n"+
		" modules. Files: vendor/MODULE/* is a module, as \"go mod vendor\" places it. vendor/std is the\n"+
		" standard library of Go.\n\n"+
		"Files: *\nCopyright: 2026 The zrlmpid authors\nLicense: Apache-2.0\n", project)
	for _, m := range r.Modules {
		fmt.Fprintf(&b, "\nFiles: vendor/%s/*\nCopyright:%sLicense: %s%sComment: Version %s.%s", m.Path,
			field(strings.Join(m.Copyright, "\n")), m.License, field(m.LicenseText), m.Version, field(m.Notices))
	}
	b.WriteString("\nLicense: Apache-2.0\n The text is in the file LICENSE next to this one, and on Debian systems in\n" +
		" /usr/share/common-licenses/Apache-2.0.\n")
	if err := os.MkdirAll(buildFolder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(copyrightFile, []byte(b.String()), 0o644)
}

// field returns lines as the value of a field that begins on the next line.
func field(text string) string {
	var b strings.Builder
	b.WriteString("\n")
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		if line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " \n\r\f"); line == "" {
			line = "."
		}
		b.WriteString(" " + line + "\n")
	}
	return b.String()
}

// sorted returns the keys of a set in order.
func sorted(set map[string]bool) []string {
	var keys []string
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
