package migration

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/preset"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var gpustackRules = rules{
	"id": {}, "created_at": {}, "updated_at": {}, "deleted_at": {}, "ready_replicas": {}, "owner_principal_id": {}, "has_stale_lora_instances": {},
	"distributable": {}, "enable_model_route": {},
	"description":            {says: descriptive},
	"meta":                   {says: descriptive},
	"categories":             {says: descriptive},
	"cluster_id":             {says: "a manifest names no cluster: apply it to the cluster that is meant"},
	"access_policy":          {says: "it has no counterpart: access to the servers is not part of scheduling", unless: []string{"authed"}},
	"generic_proxy":          {says: "it has no counterpart: access to the servers is not part of scheduling", unless: []string{"false"}},
	"restart_on_error":       {says: "it has no counterpart: Kubernetes restarts servers that end", unless: []string{"true"}},
	"run_command":            {says: "write the command under server.command"},
	"lora_list":              {says: "the size of the adapters is not known: write them under adapters, each with its name, and path or memory"},
	"scaling_schedule":       {says: "it has no counterpart: change replicas at these times, for example with a CronJob"},
	"extended_kv_cache":      {says: "it has no counterpart: write the flags of the cache under server.args, and the memory of the node that it takes under resources"},
	"gpu_type_selector.type": {says: "it has no counterpart: name a label of these nodes under placement.nodeSelector"},
	"gpu_type_selector.accelerator_sliced_memory_percentage": {says: "a Model takes whole devices or MIG slices, and not a percentage", unless: []string{"0"}},
	"gpu_type_selector.accelerator_sliced_cores_percentage":  {says: "a Model takes whole devices or MIG slices, and not a percentage", unless: []string{"0"}},
}

const descriptive = "it has no counterpart: it describes the model to people"

// workerLabels are the labels that GPUStack gives each worker, and those of Kubernetes.
var workerLabels = map[string]string{"worker-name": corev1.LabelHostname, "os": corev1.LabelOSStable, "arch": corev1.LabelArchStable}

// isGPUStack reports whether the object is a model of GPUStack, which has no kind.
func isGPUStack(root *yaml.Node) bool {
	root = strict.Resolve(root)
	return strict.Text(root, "name") != "" && strict.Text(root, "source") != ""
}

// gpustackModel converts a model as the API of GPUStack writes it.
func gpustackModel(m *migration, o *object) {
	o.kind = "model"
	o.meta.Name = o.text("name")
	model := &v1alpha1.Model{TypeMeta: typeMeta(v1alpha1.KindModel), ObjectMeta: metav1.ObjectMeta{Name: objectName(o.meta.Name)}}
	if model.Name != o.meta.Name {
		o.notef(path{"name"}, "the model is named %s, because names of Kubernetes have lower-case letters, digits, - and . only", phrase.Quote(model.Name))
	}
	g := &gpustack{object: o, model: model, document: &Document{Object: model, id: modelID(model), from: o}}
	m.models = append(m.models, g.document)
	if n, set := take[int](o, "replicas"); set {
		model.Spec.Replicas = &n
	}
	g.source()
	g.backend()
	g.placement()
	g.selectors()
	g.server()
	g.draft()
	g.quiet("scaling_schedule", "extended_kv_cache", "speculative_config")
	o.rest(gpustackRules)
}

type gpustack struct {
	object   *object
	model    *v1alpha1.Model
	document *Document
	name     string // of the backend; "" if it is not known
}

// objectName returns the name in lower case, with a hyphen for each character that names may not have.
func objectName(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(out, "-.")
}

// source takes where the model comes from.
func (g *gpustack) source() {
	o, spec := g.object, &g.model.Spec
	kind := o.text("source")
	file := cmp.Or(o.text("huggingface_filename"), o.text("model_scope_file_path"))
	repository, scope, local := o.text("huggingface_repo_id"), o.text("model_scope_model_id"), o.text("local_path")
	switch kind {
	case "huggingface":
		g.repository(repository, file, path{"huggingface_repo_id"})
	case "model_scope":
		g.repository(scope, file, path{"model_scope_model_id"})
		o.notef(path{"source"}, "the server loads models from the Hugging Face Hub: if the repository has another name there, write it under source.repository")
	case "local_path":
		spec.Source.LocalPath = local
	default:
		g.document.Problem = sizeUnknown
		o.notef(path{"source"}, "a model of the source %s has no counterpart", phrase.Quote(kind))
	}
}

// repository sets the preset of a repository. Of a GGUF file, the size is not known.
func (g *gpustack) repository(name, file string, at path) {
	if file == "" {
		if p, err := preset.Find(name); err == nil && strings.Contains(name, "/") {
			g.model.Spec.Source.Preset = p.Name
			return
		}
	} else if strings.EqualFold(filepath.Ext(file), ".gguf") {
		g.model.Spec.Source.Files = phrase.Clip(file)
		g.object.notef(at, "the file %s is not read: download it and name it under source.gguf, or write memory", phrase.Quote(file))
	}
	g.model.Spec.Source.Repository = name
	g.document.Problem = sizeUnknown
}

// backend takes the server and its parameters. A backend that Berth does not know is custom.
func (g *gpustack) backend() {
	o, spec := g.object, &g.model.Spec
	if name := o.text("backend"); name != "" {
		b, err := backend.Find(name)
		if err != nil {
			b, _ = backend.Find("custom")
			o.notef(path{"backend"}, "Berth does not know %s: it is written as custom, which needs server.image and server.command", phrase.Quote(name))
		}
		if b != nil {
			spec.Backend = b.Name
		}
		g.name = spec.Backend
	}
	if version := o.text("backend_version"); version != "" {
		b, err := backend.Find(cmp.Or(spec.Backend, "vllm"))
		if err == nil {
			_, err = b.Types(version)
		}
		if err != nil {
			o.notef(path{"backend_version"}, "the version %s is left out: name an image under server.image", phrase.Quote(version))
		} else {
			spec.BackendVersion = version
		}
	}
	parameters, _ := take[[]string](o, "backend_parameters")
	g.parameters(parameters)
}

// placement takes where replicas are placed.
func (g *gpustack) placement() {
	o, p := g.object, &g.model.Spec.Placement
	switch strategy := o.text("placement_strategy"); strategy {
	case "", "spread": // the default of GPUStack
		p.Strategy = "Spread"
	case "binpack":
		p.Strategy = "Pack"
	default:
		o.notef(path{"placement_strategy"}, "the strategy %s is not known", phrase.Quote(strategy))
	}
	p.CPUOffload, _ = take[bool](o, "cpu_offloading")
	if distributed, set := take[bool](o, "distributed_inference_across_workers"); set {
		p.Distributed = &distributed
	}
}

// selectors takes which nodes and devices may be used.
func (g *gpustack) selectors() {
	o, p := g.object, &g.model.Spec.Placement
	labels, _ := take[map[string]string](o, "worker_selector")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if p.NodeSelector == nil {
			p.NodeSelector = map[string]string{}
		}
		p.NodeSelector[cmp.Or(workerLabels[key], key)] = labels[key]
	}
	p.Devices, _ = take[[]string](o, "gpu_selector", "gpu_ids")
	if n, set := take[int](o, "gpu_selector", "gpus_per_replica"); set && n > 0 {
		p.DevicesPerReplica = n
	}
	if len(p.Devices) > 0 {
		o.notef(path{"gpu_selector", "gpu_ids"}, "the names of workers must be those of nodes")
	}
	p.Partition = o.text("gpu_type_selector", "accelerator_partitioned_profile")
}

// server takes the image and the variables of the server.
func (g *gpustack) server() {
	o := g.object
	if image := o.text("image_name"); image != "" {
		g.serverSpec().Image = image
	}
	env, _ := take[map[string]string](o, "env")
	if len(env) == 0 {
		return
	}
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var list []variable
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, variable{name, env[name]})
	}
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "server", "env": list}}}})
	if err != nil {
		o.errorf(path{"env"}, "%s", err)
		return
	}
	g.model.Spec.Template = &runtime.RawExtension{Raw: raw}
}

func (g *gpustack) serverSpec() *v1alpha1.ModelServer {
	if g.model.Spec.Server == nil {
		g.model.Spec.Server = &v1alpha1.ModelServer{}
	}
	return g.model.Spec.Server
}

// draft takes a draft model for speculative decoding, if it is a preset.
func (g *gpustack) draft() {
	o := g.object
	at := path{"speculative_config"}
	if n := o.node(at.Add("enabled")); n == nil || n.Value != "true" {
		return
	}
	o.touch(at)
	o.mark(at.Add("enabled"))
	if name := o.text(at.Add("draft_model")...); name != "" {
		if p, err := preset.Find(name); err == nil {
			g.model.Spec.Draft = &v1alpha1.ModelSource{Preset: p.Name}
		} else {
			o.notef(at.Add("draft_model"), "the size of %s is not known: name its files under draft", phrase.Quote(name))
		}
	}
	for _, field := range []string{"algorithm", "num_draft_tokens", "ngram_min_match_length", "ngram_max_match_length"} {
		if n := o.node(at.Add(field)); n != nil {
			o.mark(at.Add(field))
			o.notef(at.Add(field), "write the flags of speculative decoding under server.args")
		}
	}
}

// quiet marks settings that are turned off.
func (g *gpustack) quiet(fields ...string) {
	for _, field := range fields {
		if n := g.object.node(path{field, "enabled"}); n != nil && n.Value == "false" {
			g.object.mark(path{field})
		}
	}
}
