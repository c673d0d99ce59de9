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

// Speech is a model whose memory is in a table, because no arithmetic on its
// files gives it.
type Speech struct {
	Name       string
	Parameters int64
	Memory     cluster.Bytes // of the device, or of the node without one
	Source     string
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

var speeches = sync.OnceValue(func() speechDocument { return table.Read[speechDocument]("speech.yaml", speechFile) })

// FromTable says whether the memory of its models is in a table.
func (b *Backend) FromTable() bool { return b.speech }

// FindSpeech returns the speech model of that name: a repository's owner does
// not count, nor does the prefix of those converted for another runtime.
func FindSpeech(name string) (Speech, error) {
	short := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	short = strings.TrimPrefix(short, "faster-")
	var names []string
	for _, e := range speeches().Speech {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if n == short {
				return Speech{Name: e.Name, Parameters: e.Parameters, Memory: e.Memory.Bytes, Source: e.Source}, nil
			}
		}
		names = append(names, e.Name)
	}
	return Speech{}, fmt.Errorf("the memory of %q is in no table; give it explicitly%s", name, nearest.Hint(short, names))
}
