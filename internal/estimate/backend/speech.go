package backend

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/internal/table"
	"github.com/berth-project/berth/internal/nearest"
)

// Speech is a speech model. Its memory is listed in a table, because it cannot be computed
// from the files.
type Speech struct {
	Name       string
	Parameters int64
	Memory     cluster.Bytes // of the device, or of the node if there is no device
	Source     string        // where the figure of Memory is from; speech.yaml explains the values
}

//go:embed speech.yaml
var speechFile []byte

type speechDocument struct {
	Speech []struct {
		Name       string    `yaml:"name"`
		Aliases    []string  `yaml:"aliases"`
		Parameters int64     `yaml:"parameters"`
		Memory     table.GiB `yaml:"memory"`
		Source     string    `yaml:"source"`
	} `yaml:"speech"`
}

var speechModels = sync.OnceValue(func() speechDocument { return table.Read[speechDocument]("speech.yaml", speechFile) })

// FromTable reports whether the backend serves speech models, with memory from a table.
func (b *Backend) FromTable() bool { return b.speech }

// FindSpeech returns the speech model with this name. The owner of the repository is
// ignored, and so is the prefix "faster-" of models that are converted for another
// runtime.
func FindSpeech(name string) (Speech, error) {
	short := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	short = strings.TrimPrefix(short, "faster-")
	var names []string
	for _, e := range speechModels().Speech {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if n == short {
				return Speech{Name: e.Name, Parameters: e.Parameters, Memory: e.Memory.Bytes, Source: e.Source}, nil
			}
		}
		names = append(names, e.Name)
	}
	return Speech{}, fmt.Errorf("the memory of %q is not in the table; set it explicitly%s", name, nearest.Hint(short, names))
}
