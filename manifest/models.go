package manifest

import (
	"strings"

	"github.com/berth-project/berth/model"
)

// Models reads the models of one file by themselves, with their sources: the
// queues and nodes that they name may be elsewhere.
func Models(file string) ([]*model.Spec, error) {
	name, data, err := read(file, strings.NewReader(""))
	if err != nil {
		return nil, Errors{*err}
	}
	b, errs := parse(name, data)
	m := stateMaker{bundle: b, around: b.around(), errs: errs}
	var out []*model.Spec
	for _, o := range b.Models {
		r := b.reporter(o, &m.errs)
		if s := makeModel(o, m.around, r); m.sources(s, o, r) && s.Backend != nil {
			out = append(out, s)
		}
	}
	if len(out) == 0 && len(m.errs) == 0 {
		m.errs = Errors{{File: name, Message: "there is no Model in it; a manifest to estimate has kind: Model"}}
	}
	return out, m.errs.failure()
}
