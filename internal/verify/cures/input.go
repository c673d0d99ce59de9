// Package cures checks that the changes that berth why lists are true. It makes random clusters
// as manifests, asks berth why about each refused workload, carries every listed change out on
// the manifests, and simulates again. It also tries single changes by brute force, to find
// workloads for which berth why lists no change although one would help.
//
// The package changes manifests with code of its own, and runs berth as a user would.
package cures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berth-project/berth/command"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/plugins/standard"
)

// Object is a manifest.
type Object = map[string]any

// Input is the manifests of a cluster, and the time of the decisions; "" is the newest time in
// the manifests.
type Input struct {
	Objects []Object
	Now     string
}

// JSON returns the manifests as one list.
func (in Input) JSON() []byte {
	data, err := json.MarshalIndent(Object{"apiVersion": "v1", "kind": "List", "items": in.Objects}, "", " ")
	if err != nil {
		panic(err) // objects are made of values that JSON has
	}
	return data
}

// clone returns a copy that shares nothing with the input.
func (in Input) clone() Input {
	var list struct{ Items []Object }
	if err := json.Unmarshal(in.JSON(), &list); err != nil {
		panic(err)
	}
	return Input{list.Items, in.Now}
}

// run runs berth with the manifests as standard input, and decodes its JSON answer.
func (in Input) run(answer any, args ...string) error {
	args = append(args, "-o", "json")
	if in.Now != "" {
		args = append(args, "--now", in.Now)
	}
	var out, errs bytes.Buffer
	if code := command.Main(standard.Registry(), args, bytes.NewReader(in.JSON()), &out, &errs); code != 0 {
		return fmt.Errorf("berth %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return json.Unmarshal(out.Bytes(), answer)
}

func (in Input) simulate() (*wire.Result, error) {
	var out wire.Result
	return &out, in.run(&out, "simulate", "-")
}

func (in Input) why(workload string) (*wire.Report, error) {
	var out wire.Report
	return &out, in.run(&out, "why", workload, "-")
}

func (in Input) whatif(arguments []string) (*wire.Difference, error) {
	var out wire.Difference
	return &out, in.run(&out, append([]string{"whatif", "-"}, arguments...)...)
}

// id returns the ID of an object, such as job/train.
func id(o Object) string {
	kind := strings.ToLower(o["kind"].(string))
	meta := o["metadata"].(Object)
	namespace, _ := meta["namespace"].(string)
	for _, how := range groupings {
		if o["apiVersion"] == how.version {
			kind = how.source
		}
	}
	if kind == "pod" && namespace == "" {
		namespace = "default"
	}
	if namespace != "" {
		namespace += "/"
	}
	return kind + "/" + namespace + meta["name"].(string)
}

// find returns the index of the object with the ID, or -1.
func (in Input) find(name string) int {
	return slices.IndexFunc(in.Objects, func(o Object) bool { return id(o) == name })
}

// Carry returns the manifests after the changes that the arguments of berth whatif name.
func (in Input) Carry(arguments []string) (Input, error) {
	out := in.clone()
	for i := 0; i+1 < len(arguments); i += 2 {
		var err error
		switch value := arguments[i+1]; arguments[i] {
		case "--set":
			err = out.set(value)
		case "--remove":
			err = out.remove(value)
		case "--add-nodes":
			err = out.addNodes(value)
		case "--wait-until":
			out.Now = value
		default:
			err = fmt.Errorf("unknown argument %s", arguments[i])
		}
		if err != nil {
			return out, err
		}
	}
	if len(arguments)%2 != 0 {
		return out, fmt.Errorf("%v: an argument lacks its value", arguments)
	}
	return out, nil
}

func (in *Input) remove(name string) error {
	if !strings.Contains(name, "/") {
		name = "node/" + name
	}
	if in.members(name) != nil {
		in.removeGang(name)
		return nil
	}
	i := in.find(name)
	if i < 0 {
		return fmt.Errorf("no object %s", name)
	}
	in.Objects = slices.Delete(in.Objects, i, i+1)
	return nil
}

// addNodes adds empty copies of a node: "gpu-1=2".
func (in *Input) addNodes(value string) error {
	name, count, _ := strings.Cut(value, "=")
	n, err := strconv.Atoi(count)
	i := in.find("node/" + name)
	if err != nil || i < 0 {
		return fmt.Errorf("--add-nodes %s: no such node, or no number", value)
	}
	for k := 1; k <= n; k++ {
		in.Objects = append(in.Objects, emptyCopy(in.Objects[i], fmt.Sprintf("%s-copy-%d", name, k)))
	}
	return nil
}

// emptyCopy returns a node like the given one on which nothing runs and that is ready.
func emptyCopy(node Object, name string) Object {
	out := Input{Objects: []Object{node}}.clone().Objects[0]
	meta := out["metadata"].(Object)
	was := meta["name"]
	meta["name"] = name
	labels, _ := meta["labels"].(Object)
	for k, v := range labels {
		if v == was {
			labels[k] = name
		}
	}
	spec, _ := out["spec"].(Object)
	delete(spec, "unschedulable")
	if taints, ok := spec["taints"].([]any); ok {
		spec["taints"] = slices.DeleteFunc(taints, func(t any) bool {
			return strings.HasPrefix(t.(Object)["key"].(string), "node.kubernetes.io/")
		})
	}
	if devices, ok := spec["devices"].(Object); ok {
		delete(devices, "lost")
	}
	if status, ok := out["status"].(Object); ok {
		delete(status, "state")
		delete(status, "conditions")
	}
	return out
}

// set sets a field: "job/train.spec.priority=10".
func (in *Input) set(assignment string) error {
	target, value, ok := strings.Cut(assignment, "=")
	at := -1
	for i, o := range in.Objects {
		if strings.HasPrefix(target, id(o)+".") && (at < 0 || len(id(o)) > len(id(in.Objects[at]))) {
			at = i
		}
	}
	if at < 0 || !ok {
		if strings.HasPrefix(target, "queue/default.") { // it exists without a manifest
			in.Objects = append(in.Objects, Object{"apiVersion": apiVersion, "kind": "Queue", "metadata": Object{"name": "default"}})
			return in.set(assignment)
		}
		return fmt.Errorf("--set %s: no such object", assignment)
	}
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		return fmt.Errorf("--set %s: %w", assignment, err)
	}
	o := in.Objects[at]
	changed, err := assign(o, steps(strings.TrimPrefix(target, id(o)+".")), v)
	if err != nil {
		return fmt.Errorf("--set %s: %w", assignment, err)
	}
	in.Objects[at] = changed.(Object)
	return nil
}

// keyed are the fields that map keys, which may have dots, to values.
var keyed = []string{"nodeSelector", "labels", "annotations", "requests", "limits", "quota", "resources"}

// steps splits a path into names of fields and indexes of lists.
func steps(path string) []any {
	var out []any
	for path != "" {
		if len(out) > 0 && slices.Contains(keyed, fmt.Sprint(out[len(out)-1])) &&
			!strings.HasPrefix(path, "requests.") && !strings.HasPrefix(path, "limits.") {
			return append(out, path)
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end > 0 {
			out = append(out, path[:end])
		}
		path = path[end:]
		if strings.HasPrefix(path, "[") {
			inside, rest, _ := strings.Cut(path[1:], "]")
			index, _ := strconv.Atoi(inside)
			out, path = append(out, index), rest
		}
		path = strings.TrimPrefix(path, ".")
	}
	return out
}

// assign sets the value at the path below a field or list, or removes it if the value is nil.
func assign(tree any, path []any, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch step := path[0].(type) {
	case int:
		list, _ := tree.([]any)
		if step > len(list) || value == nil && step == len(list) {
			return nil, fmt.Errorf("the list has no entry %d", step)
		}
		if value == nil && len(path) == 1 {
			return slices.Delete(list, step, step+1), nil
		}
		if step == len(list) {
			list = append(list, nil)
		}
		changed, err := assign(list[step], path[1:], value)
		list[step] = changed
		return list, err
	case string:
		fields, ok := tree.(Object)
		if tree == nil {
			fields, ok = Object{}, true
		}
		if !ok {
			return nil, fmt.Errorf("%s is not a field here", step)
		}
		if value == nil && len(path) == 1 {
			delete(fields, step)
			return fields, nil
		}
		changed, err := assign(fields[step], path[1:], value)
		fields[step] = changed
		return fields, err
	}
	return tree, nil
}
