package manifest

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/strict"
)

// parseJSON reads a file in JSON.
func parseJSON(name string, o *strict.JSON, each func(*Bundle)) (*Bundle, Errors) {
	b := &Bundle{}
	var errs Errors
	j := jsonReader{bundle: b, file: name, errs: &errs, trees: &lastTree{}, each: each}
	j.read(o, "", "")
	return b, errs
}

// parseBlocks reads a file in YAML, and makes trees only of what strict.Blocks does not rewrite
// as JSON. It reports false if a part of the file is no YAML. The whole file is then read as trees,
// because what the library reports about a part depends on what is before and after it.
func parseBlocks(name string, data []byte, each func(*Bundle)) (*Bundle, Errors, bool) {
	b := &Bundle{}
	var errs Errors
	j := jsonReader{bundle: b, file: name, errs: &errs, trees: &lastTree{}, each: each}
	ok := strict.Blocks(data, func(o *strict.JSON) {
		if !j.broken {
			j.read(o, "", "")
		}
	})
	return b, errs, ok && !j.broken
}

// jsonReader adds the objects of a file in JSON to a bundle, or those of a file in YAML that is
// rewritten as JSON. An object with any mistake is read as a tree, so that its errors are those of
// YAML.
type jsonReader struct {
	bundle *Bundle
	file   string
	errs   *Errors
	trees  *lastTree
	each   func(*Bundle) // is called after every object
	broken bool          // an object could not be read as a tree
}

// read reads an object, or the objects of a list. Version and kind are as in Bundle.readAs.
func (j *jsonReader) read(o *strict.JSON, version, kind string) {
	defer j.each(j.bundle)
	own, ownKind := version, kind
	if v := o.Text("apiVersion"); v != "" {
		own = v
	}
	if k := o.Text("kind"); k != "" {
		ownKind = k
	}
	if j.readKind(o, own, ownKind) {
		return
	}
	if isForeign(own, ownKind) {
		j.bundle.skipped.add(ownKind, 1)
		return
	}
	root, errs := o.Tree(j.file)
	if len(errs) > 0 {
		*j.errs = append(*j.errs, errs...)
		j.bundle.unread++
		j.broken = true
	} else if root != nil {
		j.bundle.readAs(j.file, root, version, kind, j.errs)
	}
}

// readKind reports false if the object is of no known kind or has to be read as a tree.
func (j *jsonReader) readKind(o *strict.JSON, version, kind string) bool {
	for _, k := range kinds {
		if k.is(version, kind) && k.readJSON != nil {
			src := &source{file: j.file, start: o.Position, text: o, trees: j.trees}
			return k.readJSON(j.bundle, o, reporter{src, j.errs})
		}
	}
	item, list := strings.CutSuffix(kind, "List")
	if !list || !slices.Contains(kindNames(version), kind) {
		return false
	}
	if item == "" { // a List: each item has a kind of its own
		version = ""
	}
	return o.Items("items", func(x *strict.JSON) { j.read(x, version, item) })
}
