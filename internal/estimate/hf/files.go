package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/printable"
)

const (
	indexFile = "model.safetensors.index.json"
	maxIndex  = 64 << 20
	maxShards = 10_000
)

// index is the content of model.safetensors.index.json.
type index struct {
	Metadata struct {
		TotalSize json.Number `json:"total_size"`
	} `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// checkIndex returns an error if the shards do not have a tensor that the index of the
// directory names. There may be no index. seen maps the tensors to their files.
func checkIndex(dir string, seen map[string]string) error {
	path := filepath.Join(dir, indexFile)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	ix, err := readIndex(path)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(ix.WeightMap)) {
		switch in, there := seen[name]; {
		case !there:
			return fmt.Errorf("%s names tensor %q, which %s does not have; download both again", path, printable.Text(name), ix.WeightMap[name])
		case filepath.Base(in) != ix.WeightMap[name]:
			return fmt.Errorf("%s says that tensor %q is in %s, and it is in %s; download them again", path, printable.Text(name), ix.WeightMap[name], filepath.Base(in))
		}
	}
	return nil
}

// files returns the files with the tensors that are counted. If there is an index and none of
// its shards exists, total is the size that the index gives.
func files(dir string) (paths []string, total int64, err error) {
	if _, err := os.Stat(filepath.Join(dir, indexFile)); err == nil {
		return indexedFiles(dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	var plain, consolidated, foreign []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir() || strings.HasPrefix(name, "adapter_model"):
		case !strings.HasSuffix(name, ".safetensors"):
			if slices.Contains([]string{".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack"}, filepath.Ext(name)) {
				foreign = append(foreign, name)
			}
		case name == "model.safetensors":
			return []string{filepath.Join(dir, name)}, 0, nil
		case strings.HasPrefix(name, "consolidated"):
			consolidated = append(consolidated, filepath.Join(dir, name))
		default:
			plain = append(plain, filepath.Join(dir, name))
		}
	}
	if len(plain) == 0 {
		plain = consolidated // beside other files, they are copies of the same weights
	}
	switch {
	case len(plain) > 0:
		return plain, 0, checkComplete(plain)
	case len(foreign) > 0:
		return nil, 0, fmt.Errorf("%s has no .safetensors file, only %s, which must be loaded to know its size; convert the model to safetensors, or set its memory", dir, foreign[0])
	}
	return nil, 0, fmt.Errorf("%s has no .safetensors file and no %s; download one of them, or set the memory of the model", dir, indexFile)
}

var shard = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.safetensors$`)

// checkComplete returns an error if a shard is missing, for models without an index.
func checkComplete(paths []string) error {
	for _, p := range paths {
		m := shard.FindStringSubmatch(filepath.Base(p))
		if m == nil {
			continue
		}
		of, _ := strconv.Atoi(m[3])
		for i := 1; i <= min(of, maxShards); i++ {
			want := filepath.Join(filepath.Dir(p), fmt.Sprintf("%s-%05d-of-%s.safetensors", m[1], i, m[3]))
			if !slices.Contains(paths, want) {
				return fmt.Errorf("%s is missing; download it", want)
			}
		}
		return nil
	}
	return nil
}

func indexedFiles(dir string) (paths []string, total int64, err error) {
	ix, err := readIndex(filepath.Join(dir, indexFile))
	if err != nil {
		return nil, 0, err
	}
	names := map[string]bool{}
	for _, name := range ix.WeightMap {
		names[name] = true
	}
	var missing []string
	for name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, path)
		} else if err != nil {
			return nil, 0, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	slices.Sort(missing)
	switch {
	case len(missing) == 0:
		return paths, 0, nil
	case len(missing) < len(paths):
		return nil, 0, fmt.Errorf("%s is missing (%d of %d shards are missing); download it", missing[0], len(missing), len(paths))
	}
	size, err := ix.Metadata.TotalSize.Float64()
	if err != nil || size < 1 || size > maxWeights || size != math.Trunc(size) {
		return nil, 0, fmt.Errorf("%s: no shard exists, and metadata.total_size is %q, which is not a number of bytes; download the shards", filepath.Join(dir, indexFile), ix.Metadata.TotalSize)
	}
	return nil, int64(size), nil
}

func readIndex(path string) (index, error) {
	f, size, err := open(path)
	if err != nil {
		return index{}, err
	}
	defer f.Close()
	if size > maxIndex {
		return index{}, fmt.Errorf("%s has %d bytes, which is too large for an index", path, size)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIndex))
	if err != nil {
		return index{}, err
	}
	ix, err := decodeIndex(text)
	if err != nil {
		return index{}, fmt.Errorf("%s: %w", path, err)
	}
	return ix, nil
}

func decodeIndex(text []byte) (index, error) {
	var ix index
	if err := decode("", text, &ix); err != nil {
		return index{}, err
	}
	if len(ix.WeightMap) == 0 {
		return index{}, errors.New("weight_map names no file")
	}
	names := map[string]bool{}
	for _, name := range ix.WeightMap {
		names[name] = true
		// Shards must be in the directory of the index, so that an index cannot refer to other files.
		if name == "" || name != filepath.Base(name) || name == "." || name == ".." || strings.ContainsRune(name, '\\') || !strings.HasSuffix(name, ".safetensors") || !printable.All(name) {
			return index{}, fmt.Errorf("weight_map names %q, which is not a .safetensors file of this directory", name)
		}
	}
	if len(names) > maxShards {
		return index{}, fmt.Errorf("weight_map names %d files; at most %d are allowed", len(names), maxShards)
	}
	return ix, nil
}
