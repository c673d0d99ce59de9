package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// showName returns the name of a model from its path, without the extension and the
// number of the part.
func showName(path string) string {
	base := printable.Text(filepath.Base(path))
	if m := partName.FindStringSubmatch(base); m != nil {
		return m[1]
	}
	return strings.TrimSuffix(base, ".gguf")
}

// readParts reads the headers of all parts of a model. path may name any of them.
func readParts(path string) ([]*header, error) {
	dir, base := filepath.Split(path)
	m := partName.FindStringSubmatch(base)
	if m == nil {
		h, err := readHeader(path)
		if err != nil {
			return nil, err
		}
		if n, _ := h.values["split.count"].wholeNumber(); n > 1 {
			return nil, fmt.Errorf("%s: it is one of %d parts, and its name does not say which; rename the parts as in NAME-00001-of-%05d.gguf", path, n, n)
		}
		return []*header{h}, nil
	}
	// Atoi cannot fail, because the pattern has five digits each.
	number, _ := strconv.Atoi(m[2])
	total, _ := strconv.Atoi(m[3])
	if number < 1 || number > total {
		return nil, fmt.Errorf("%s: there is no part %d of %d", path, number, total)
	}
	var parts []*header
	tensors := 0
	for i := 1; i <= total; i++ {
		part := fmt.Sprintf("%s%s-%05d-of-%05d.gguf", dir, m[1], i, total)
		h, err := readHeader(part)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: part %d of %d is missing: %w", path, i, total, err)
		}
		if err != nil {
			return nil, err
		}
		if n, ok := h.values["split.count"].wholeNumber(); ok && n != uint64(total) {
			return nil, fmt.Errorf("%s: it is one of %d parts, but its name says %d", part, n, total)
		}
		if n, ok := h.values["split.no"].wholeNumber(); ok && n != uint64(i-1) {
			return nil, fmt.Errorf("%s: it is part %d, but its name says %d", part, n+1, i)
		}
		parts = append(parts, h)
		tensors += len(h.tensors)
	}
	if n, ok := parts[0].values["split.tensors.count"].wholeNumber(); ok && n != uint64(tensors) {
		return nil, fmt.Errorf("%s: its %d parts have %d tensors together, but the first says %d", path, total, tensors, n)
	}
	return parts, nil
}
