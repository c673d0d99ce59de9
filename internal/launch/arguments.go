package launch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// arguments collects the arguments of a command.
type arguments []string

// text adds the flag if the value is not "".
func (a *arguments) text(flag, value string) {
	if value != "" {
		*a = append(*a, flag, value)
	}
}

// number adds the flag if the value is above 0.
func (a *arguments) number(flag string, value int) {
	if value > 0 {
		*a = append(*a, flag, strconv.Itoa(value))
	}
}

// several adds the flag if the value is above 1.
func (a *arguments) several(flag string, value int) {
	if value > 1 {
		a.number(flag, value)
	}
}

// flag adds the flag if it is set.
func (a *arguments) flag(flag string, set bool) {
	if set {
		*a = append(*a, flag)
	}
}

// with returns a copy with more arguments.
func (a arguments) with(more ...string) []string {
	return append(append(make([]string, 0, len(a)+len(more)), a...), more...)
}

// share returns thousandths as a decimal number, such as 0.9.
func share(m cluster.Milli) string {
	if m <= 0 {
		return ""
	}
	return strconv.FormatFloat(float64(m)/float64(cluster.Whole), 'f', -1, 64)
}

// variable returns the text that the container replaces by the value of the variable.
func variable(name string) string { return "$(" + name + ")" }

// cacheType returns the value for a KV cache of 8 bits; "": as the server decides.
func cacheType(bits int, eight string) string {
	if bits == 8 {
		return eight
	}
	return ""
}

// adapter is a LoRA adapter: its name, and its path in the container.
type adapter struct{ name, path string }

// adapters returns the adapters of the model that the server loads when it starts: those that have
// a path.
func (r *Replica) adapters() ([]adapter, error) {
	var out []adapter
	for i := range r.Object.Spec.Adapters {
		x := &r.Object.Spec.Adapters[i]
		switch {
		case x.Path == "": // the user loads it, by arguments of the server or while it runs
			continue
		case strings.ContainsAny(x.Name+x.Path, "=,{}\"\n\t "):
			return nil, problem("the server does not accept spaces, quotation marks, =, commas and braces in the name and the path of an adapter", "spec", "adapters", i)
		}
		path, err := inContainer(r.Object, x.Path, "spec", "adapters", i)
		if err != nil {
			return nil, err
		}
		out = append(out, adapter{literal(x.Name), literal(path)})
	}
	return out, nil
}

// pairs returns the adapters as name=path.
func pairs(adapters []adapter) []string {
	var out []string
	for _, x := range adapters {
		out = append(out, x.name+"="+x.path)
	}
	return out
}

// draft returns what the server loads as draft; "" if the model has none.
func (r *Replica) draft() (string, error) {
	d := r.Object.Spec.Draft
	if d == nil {
		return "", nil
	}
	return sourceOf(r.Object, d, "draft")
}

// noInt8 is the error about backends that do not quantise all weights to 8-bit integers.
func (r *Replica) noInt8() error {
	return problem(fmt.Sprintf("%s cannot quantise all weights of a model to int8 as it loads them; write fp8, or take weights that are quantised in the files", r.Spec.Backend.Name), "spec", "quantization")
}
