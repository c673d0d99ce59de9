package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// stdinName stands for standard input in errors.
const stdinName = "<stdin>"

var extensions = []string{".yaml", ".yml", ".json"}

// files lists what the paths lead to: each file once, directories in name order.
func files(paths []string) ([]string, Errors) {
	var out []string
	var errs Errors
	seen := map[string]bool{}
	add := func(p string) {
		id := p
		if abs, err := filepath.Abs(p); err == nil && p != "-" {
			id = abs
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, p)
		}
	}
	for _, p := range paths {
		if p == "-" {
			add(p)
			continue
		}
		info, err := os.Stat(p)
		if err != nil {
			errs = append(errs, Error{File: p, Message: "cannot be read: " + cause(err)})
			continue
		}
		if !info.IsDir() {
			add(p)
			continue
		}
		before := len(out)
		err = filepath.WalkDir(p, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				errs = append(errs, Error{File: name, Message: "cannot be read: " + cause(err)})
				return nil
			case name != p && strings.HasPrefix(e.Name(), "."):
				if e.IsDir() {
					return fs.SkipDir
				}
				return nil
			case e.IsDir() || !slices.Contains(extensions, strings.ToLower(filepath.Ext(name))):
				return nil
			}
			// A mounted config map is links to files, which are read like files.
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				add(name)
			}
			return nil
		})
		if err != nil {
			errs = append(errs, Error{File: p, Message: "cannot be read: " + cause(err)})
		} else if len(out) == before && len(errs) == 0 {
			errs = append(errs, Error{File: p, Message: "the directory has no " + oneOf(extensions) + " file"})
		}
	}
	return out, errs
}

// cause drops the path that the system's errors repeat.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// read returns a file's name in errors and its content.
func read(p string, stdin io.Reader) (string, []byte, *Error) {
	name, in := p, stdin
	if p == "-" {
		name = stdinName
	} else {
		f, err := os.Open(p)
		if err != nil {
			return name, nil, &Error{File: name, Message: "cannot be read: " + cause(err)}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxFileSize+1))
	if err != nil {
		return name, nil, &Error{File: name, Message: "cannot be read: " + cause(err)}
	}
	return name, data, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// documents parses data into the roots of its documents, empty ones left out.
func documents(name string, data []byte) (roots []*yaml.Node, errs Errors) {
	if len(data) > maxFileSize {
		return nil, Errors{{File: name, Message: fmt.Sprintf("larger than %d MiB; split it", maxFileSize>>20)}}
	}
	if err := encoded(data); err != nil {
		err.File = name
		return nil, Errors{*err}
	}
	fail := func(problem string) {
		at := yamlLine.FindStringSubmatch(problem)
		line, _ := strconv.Atoi(at[1])
		if line == 0 && !strings.Contains(problem, "unknown anchor") {
			line = 1 // the library names every line but the first
		}
		errs = append(errs, Error{File: name, Line: line, Message: "this is no YAML: " + strings.TrimPrefix(problem, at[0])})
	}
	// The library answers broken input with errors; should it ever panic on
	// some, that is still a broken file and no reason to fall over.
	defer func() {
		if r := recover(); r != nil {
			fail(fmt.Sprint(r))
		}
	}()
	in := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return roots, errs
		}
		if err != nil {
			fail(err.Error())
			return roots, errs
		}
		if doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 || isNull(resolve(doc.Content[0])) {
			continue
		}
		var g guard
		if err := g.check(doc.Content[0]); err != nil {
			err.File = name
			errs = append(errs, *err)
			continue
		}
		roots = append(roots, doc.Content[0])
	}
}

// control reports whether YAML forbids the character.
func control(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r > 0x7f && r < 0xa0 && r != 0x85
}

// encoded finds the first byte that cannot be text, which the library reports without its place.
func encoded(data []byte) *Error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil // UTF-16, as PowerShell redirects; the library reads it
	}
	bad, problem := bytes.IndexFunc(data, control), "a control character: is this a text file?"
	if bad >= 0 && data[bad] == 0 {
		problem = "a NUL byte: is this a text file?"
	}
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				if bad < 0 || i < bad {
					bad, problem = i, "a byte that is not UTF-8: save the file as UTF-8"
				}
				break
			}
			i += size
		}
	}
	if bad < 0 {
		return nil
	}
	before := data[:bad]
	return &Error{Line: bytes.Count(before, []byte("\n")) + 1, Column: bad - bytes.LastIndexByte(before, '\n'), Message: problem}
}
