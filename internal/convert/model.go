package convert

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/phrase"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits of a model.
const (
	maxReplicas  = 10_000
	maxContext   = 100_000_000 // tokens
	maxSequences = 1_000_000
	maxParallel  = 4096
	maxLayers    = 4096

	maxMicroBatch = 65536

	maxModelMemory = 8 << 40   // bytes
	maxConfig      = 512 << 10 // bytes of source.config
	maxRepository  = 200       // characters

	strategyPack = "Pack" // the strategy that State and snapshots call Binpack
)

var (
	modelStrategies = []cluster.Strategy{strategyPack, cluster.Spread, cluster.Binpack}
	modelStates     = []cluster.Health{cluster.HealthRunning, cluster.HealthStarting, cluster.HealthFailed}
)

// ModelID returns model/NAME or model/NAMESPACE/NAME. The ID of a replica is the ID of its
// model, a hyphen and the number of the replica.
func ModelID(o *v1alpha1.Model) string { return scopedID("model", &o.ObjectMeta) }

// Model converts a model. The files of the model are not read: Source and Draft of the
// result are nil, and Adapters is the memory of the adapters that state it, without those
// that have a path.
func Model(o *v1alpha1.Model, env *Environment) (*model.Spec, Notes) {
	var notes Notes
	r := reporter{&notes}
	spec := path{"spec"}
	checkName(o.Name, "model", r)
	checkNamespace(o.Namespace, r)
	checkLabels(o.Labels, path{"metadata", "labels"}, r)
	s := &model.Spec{
		ID: ModelID(o), Namespace: o.Namespace, Labels: o.Labels, Created: created(&o.ObjectMeta), Replicas: 1,
		Version: o.Spec.BackendVersion, Queue: o.Spec.Queue, Priority: o.Spec.Priority, Profile: env.profile(o.Spec.SchedulerName),
		Tolerations: makeTolerations(o.Spec.Tolerations, spec.Add("tolerations"), r),
		Resources:   makeModelResources(o, env, spec.Add("resources"), r),
	}
	s.Preemptible, s.Remarks = env.preemptible(o.Spec.Preemptible, o.Spec.Queue)
	s.StaleGrace = staleGrace(o.Spec.StaleGrace, spec.Add("staleGrace"), r)
	s.PreemptionDelay = preemptionDelay(o.Spec.PreemptionDelay, spec.Add("preemptionDelay"), r)
	if n := o.Spec.Replicas; n != nil {
		s.Replicas = *n
		checkRange(*n, 0, maxReplicas, spec.Add("replicas"), r)
	}
	if iso := o.Spec.Isolation; iso != nil {
		s.Isolation = makeIsolation(nil, iso, spec.Add("isolation"), r)
	}
	makeServe(s, &o.Spec, spec, r)
	makeModelMemory(s, o.Spec.Memory, spec.Add("memory"), r)
	makeSource(s, o, spec, r)
	makeModelPlace(s, &o.Spec.Placement, spec.Add("placement"), r)
	checkServer(s.Backend, o.Spec.Server, spec.Add("server"), r)
	checkTemplate(o.Spec.Template, spec.Add("template"), r)
	makeModelStatus(s, &o.Status, r)
	return s, notes
}

// checkRange reports a number that is less than least or more than most.
func checkRange(n, least, most int, at path, r reporter) {
	if n < least || n > most {
		r.errorf(at, "want from %d to %d, have %d", least, most, n)
	}
}

func makeModelResources(o *v1alpha1.Model, env *Environment, at path, r reporter) cluster.Resources {
	var out cluster.Resources
	for _, a := range amounts(o.Spec.Resources, at, r) {
		if IsDevice(a.Name) || env.DeviceResources[a.Name] {
			r.errorf(at.Add(a.Name), "devices are counted by the model's own needs; for a fixed number write placement: {devicesPerReplica: %d}", max(1, a.Value))
			continue
		}
		out = append(out, a)
	}
	return out
}

// makeServe sets how the model is served.
func makeServe(s *model.Spec, o *v1alpha1.ModelSpec, spec path, r reporter) {
	if s.Backend = findBackend(o, spec, r); s.Backend != nil {
		if _, err := s.Backend.Types(s.Version); err != nil {
			r.errorf(spec.Add("backendVersion"), "%s", err)
		}
	}
	s.Serving = estimate.Serving{Context: o.Context, Sequences: o.Sequences, BatchTokens: o.BatchTokens, Rows: o.MaxSequences, Eager: o.Eager, KVBits: o.KVCacheBits}
	for _, x := range []struct {
		field   string
		n, most int
	}{{"context", o.Context, maxContext}, {"sequences", o.Sequences, maxSequences}, {"batchTokens", o.BatchTokens, maxContext}, {"maxSequences", o.MaxSequences, maxSequences}} {
		if x.n != 0 {
			checkRange(x.n, 1, x.most, spec.Add(x.field), r)
		}
	}
	bits, err := estimate.WeightBits(o.DType, o.Quantization)
	if err != nil {
		r.errorf(spec.Add(err.Field), "%s", err)
	}
	s.Serving.WeightBits, s.DType, s.Quantization = bits, o.DType, o.Quantization
	makeLayeredServe(s, o, spec, r)
	if p := o.Parallelism; p != nil {
		s.Serving.Tensor, s.Serving.Pipeline, s.Serving.Data, s.Serving.Expert = p.Tensor, p.Pipeline, p.Data, p.Expert
		for _, x := range []struct {
			field string
			n     int
		}{{"tensor", p.Tensor}, {"pipeline", p.Pipeline}, {"data", p.Data}} {
			if x.n != 0 {
				checkRange(x.n, 1, maxParallel, spec.Add("parallelism", x.field), r)
			}
		}
		if n := max(1, p.Tensor) * max(1, p.Pipeline) * max(1, p.Data); n > maxParallel && max(p.Tensor, p.Pipeline, p.Data) <= maxParallel {
			r.errorf(spec.Add("parallelism"), "%s are %d devices; the most is %d", timesText(s.Serving), n, maxParallel)
		}
	}
	checkServing(s, spec, r)
	if q := o.GPUMemoryUtilization; q != nil {
		at := spec.Add("gpuMemoryUtilization")
		s.Utilization = makeShare(*q, at, r)
		switch b := s.Backend; {
		case b == nil:
		case !b.ClaimsShare():
			r.errorf(at, "%s claims the memory that it needs, not a part of each device; leave it out", b.Name)
		case b.Static && s.Utilization >= cluster.Whole:
			r.errorf(at, "the share of %s is for weights and cache alone, and must leave room for the rest; want less than 1, such as 0.88", b.Name)
		}
	}
}

// makeLayeredServe sets the parameters that only a backend has that divides a model by layers.
func makeLayeredServe(s *model.Spec, o *v1alpha1.ModelSpec, spec path, r reporter) {
	flash := o.FlashAttention == nil || *o.FlashAttention
	s.Serving.MicroBatch, s.Serving.NoFlashAttention, s.Serving.FullWindowCache = o.MicroBatch, !flash, o.FullWindowCache
	if b := s.Backend; b != nil && !slices.Contains(b.Strategies, backend.Offload) {
		for _, x := range []struct {
			field string
			set   bool
		}{{"microBatch", o.MicroBatch != 0}, {"flashAttention", o.FlashAttention != nil}, {"fullWindowCache", o.FullWindowCache}} {
			if x.set {
				r.errorf(spec.Add(x.field), "%s does not have this setting, only llamacpp has; leave it out", b.Name)
			}
		}
		return
	}
	if o.MicroBatch != 0 {
		checkRange(o.MicroBatch, 1, maxMicroBatch, spec.Add("microBatch"), r)
	}
	if bits := o.KVCacheBits; !flash && bits != 0 && bits < 16 {
		r.errorf(spec.Add("flashAttention"), "a cache of %d bits needs flash attention; leave one out", bits)
	}
}

// distributed reports whether a replica may be divided over several nodes: as the manifest
// says, or else if the backend can do it.
func distributed(b *backend.Backend, o *v1alpha1.ModelPlacement) bool {
	if o.Distributed != nil {
		return *o.Distributed
	}
	return b != nil && slices.Contains(b.Strategies, backend.Nodes) && !strings.EqualFold(o.Unit, "Node")
}

// timesText returns the parallelism as a product: "2 × 4".
func timesText(s estimate.Serving) string {
	text := fmt.Sprintf("%d × %d", max(1, s.Tensor), max(1, s.Pipeline))
	if s.Data > 1 {
		text += fmt.Sprintf(" × %d", s.Data)
	}
	return text
}

// checkServing reports settings that the backend does not have.
func checkServing(s *model.Spec, spec path, r reporter) {
	serving := s.Serving
	if bits := serving.KVBits; bits != 0 && bits != 16 && bits != 8 && bits != 4 {
		r.errorf(spec.Add("kvCacheBits"), "want 16, 8 or 4, have %d", bits)
		serving.KVBits = 0
	}
	if s.Backend == nil {
		return
	}
	for _, e := range s.Backend.CheckServing(serving) {
		r.errorf(spec.Add(e.Field...), "%s", e.WithRemedy())
	}
}

// findBackend returns the backend that serves the model: the one that is named, or else the
// default for the format of the source. It returns nil if there is no backend of that name.
func findBackend(o *v1alpha1.ModelSpec, spec path, r reporter) *backend.Backend {
	name := o.Backend
	if name == "" {
		name = "vllm"
		if o.Source.GGUF != "" || strings.EqualFold(filepath.Ext(o.Source.LocalPath), ".gguf") {
			name = "llamacpp"
		} else if m, err := library.Known(o.Source.Preset); err == nil && m.Format == "table" {
			name = "voxbox"
		}
	}
	b, err := backend.Find(name)
	if err != nil {
		r.errorf(spec.Add("backend"), "%s", err)
	}
	return b
}

func makeModelMemory(s *model.Spec, o *v1alpha1.ModelMemory, at path, r reporter) {
	if o == nil {
		return
	}
	convert := func(q *resource.Quantity, field string) cluster.Bytes {
		if q == nil {
			return 0
		}
		if q.Sign() <= 0 {
			r.errorf(at.Add(field), "want more than 0, have %s; leave it out to have it estimated", q.String())
			return 0
		}
		return modelBytes(*q, at.Add(field), r)
	}
	s.Memory = model.Memory{Device: convert(o.Device, "device"), Total: convert(o.Total, "total"), Host: convert(o.Host, "host")}
	if o.Device != nil && o.Total != nil {
		r.errorf(at.Add("total"), "device is of each device, total of all together; keep one")
	}
}

// modelBytes converts an amount of memory of a model. The amount is limited, so that
// its product with numbers of devices and replicas does not overflow.
func modelBytes(q resource.Quantity, at path, r reporter) cluster.Bytes {
	if q.CmpInt64(maxModelMemory) > 0 {
		r.errorf(at, "%s is too large for a model: the most is 8Ti", q.String())
		return 0
	}
	return cluster.Bytes(bytesOf(q, at, r))
}

// makeSource checks the sources of the model, of its draft and of its adapters, and sets the
// names of their files.
func makeSource(s *model.Spec, o *v1alpha1.Model, spec path, r reporter) {
	known := o.Spec.Memory != nil && (o.Spec.Memory.Device != nil || o.Spec.Memory.Total != nil)
	s.Files.Main = checkSource(&o.Spec.Source, spec.Add("source"), !known, r)
	s.Files.Path = o.Spec.Source.LocalPath
	if d := o.Spec.Draft; d != nil {
		s.Files.Draft = checkSource(d, spec.Add("draft"), true, r)
	}
	names := map[string]int{}
	for i, a := range o.Spec.Adapters {
		at := spec.Add("adapters", i)
		if a.Name == "" {
			r.errorf(at.Add("name"), "an adapter needs a name")
		} else if j, twice := names[a.Name]; twice {
			r.errorf(at.Add("name"), "adapter %s is already adapters[%d]", phrase.Quote(a.Name), j)
		}
		names[a.Name] = i
		switch {
		case (a.Path == "") == (a.Memory == nil):
			r.errorf(at, "say either memory, or path, which is read")
		case a.Memory != nil:
			s.Adapters += modelBytes(*a.Memory, at.Add("memory"), r)
		}
	}
}

// checkSource checks a source and returns the name of its files. If required is set, a source
// must be given.
func checkSource(o *v1alpha1.ModelSource, at path, required bool, r reporter) string {
	var given []string
	name := ""
	for _, x := range []struct{ field, value string }{
		{"preset", o.Preset}, {"gguf", o.GGUF}, {"huggingFace", o.HuggingFace}, {"localPath", o.LocalPath}, {"config", o.Config},
	} {
		if x.value != "" {
			given = append(given, x.field)
			name = x.value
		}
	}
	if o.Config != "" {
		name = o.Repository
	}
	switch {
	case len(given) > 1:
		r.errorf(at.Add(given[1]), "%s already says where the model comes from; keep one", given[0])
	case len(given) == 0 && required:
		r.errorf(at, "say where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory")
	}
	checkConfig(o, at, r)
	if o.Files != "" {
		name = o.Files
	}
	return name
}

// checkConfig checks the fields of a source that has the text of a config.json. Package hf
// reads the text.
func checkConfig(o *v1alpha1.ModelSource, at path, r reporter) {
	if n := len(o.Config); n > maxConfig {
		r.errorf(at.Add("config"), "the text has %d bytes; %d are the most", n, maxConfig)
	}
	switch q := o.Weights; {
	case q == nil && o.Config == "":
	case q == nil:
		r.errorf(at.Add("config"), "the size of the weights is not part of a config.json; write how large all safetensors files are together beside it, such as weights: 16Gi")
	case o.Config == "":
		r.errorf(at.Add("weights"), "weights is the size of the model that config describes; write config beside it, or leave it out")
	case q.Sign() <= 0:
		r.errorf(at.Add("weights"), "want how large all safetensors files are together, such as 16Gi, have %s", q.String())
	default:
		modelBytes(*q, at.Add("weights"), r)
	}
	if o.Repository != "" && (len(o.Repository) > maxRepository || !repository.MatchString(o.Repository)) {
		r.errorf(at.Add("repository"), "%s is not the name of a repository: write owner/name, such as Qwen/Qwen3-8B", phrase.Quote(o.Repository))
	}
}

// ConfigWeights returns the size of the weights that the source states beside config. It
// reports false if Model reports an error about it.
func ConfigWeights(o *v1alpha1.ModelSource) (cluster.Bytes, bool) {
	if q := o.Weights; q == nil || q.Sign() <= 0 || q.CmpInt64(maxModelMemory) > 0 {
		return 0, false
	}
	return cluster.Bytes(o.Weights.Value()), true
}

// repository matches the names of repositories on the Hugging Face Hub.
var repository = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?(/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?)?$`)

func makeModelPlace(s *model.Spec, o *v1alpha1.ModelPlacement, at path, r reporter) {
	checkEnum(o.Strategy, modelStrategies, at.Add("strategy"), r)
	checkEnum(o.Unit, []string{unitDevice, unitNode}, at.Add("unit"), r)
	checkDistinct(o.Cells, "cell", at.Add("cells"), r)
	checkLabels(o.NodeSelector, at.Add("nodeSelector"), r)
	s.Place = model.Place{
		Strategy: cluster.Strategy(o.Strategy), WholeNodes: o.Unit == unitNode, Cells: o.Cells, Selector: o.NodeSelector,
		Devices: o.DevicesPerReplica, Partition: o.Partition, Distributed: distributed(s.Backend, o), IfNeeded: o.Distributed == nil, Offload: o.CPUOffload, InstanceType: o.InstanceType, DeviceLayers: o.DeviceLayers,
	}
	if o.Strategy == "" || o.Strategy == strategyPack {
		s.Place.Strategy = cluster.Binpack
	}
	if n := o.DeviceLayers; n != nil {
		checkRange(*n, 0, maxLayers, at.Add("deviceLayers"), r)
	}
	if n := o.DevicesPerReplica; n != 0 {
		checkRange(n, 1, maxParallel, at.Add("devicesPerReplica"), r)
		data := max(1, s.Serving.Data)
		if all := max(1, s.Serving.Tensor) * max(1, s.Serving.Pipeline) * data; s.Serving.Tensor+s.Serving.Pipeline > 0 && all != n {
			r.errorf(at.Add("devicesPerReplica"), "parallelism %s is %d devices, not %d; leave one out", timesText(s.Serving), all, n)
		} else if n%data != 0 {
			r.errorf(at.Add("devicesPerReplica"), "%d devices cannot be divided over %d data-parallel ranks", n, data)
		}
	}
	checkModelPartition(s, o, at, r)
	if s.Place.WholeNodes && s.Serving.Tensor+s.Serving.Pipeline+s.Serving.Data > 0 {
		r.errorf(path{"spec", "parallelism"}, "with unit: %s a replica takes all devices of its nodes, and its parallelism follows from them; leave it out", unitNode)
	}
	if o.InstanceType != "" {
		if o.Unit != unitNode {
			r.errorf(at.Add("instanceType"), "an instance type needs unit: %s beside it", unitNode)
		}
		if v, set := o.NodeSelector[v1alpha1.LabelInstanceType]; set && v != o.InstanceType {
			r.errorf(at.Add("instanceType"), "nodeSelector already asks for the instance type %s; keep one", phrase.Quote(v))
		}
		checkLabelValue(o.InstanceType, at.Add("instanceType"), r)
	}
	for i, id := range o.Devices {
		if d, ok := deviceID(id); ok {
			s.Place.Selected = append(s.Place.Selected, d)
		} else {
			r.errorf(at.Add("devices", i), "%s is not a device: write node:type:index, such as gpu-1:cuda:0", phrase.Quote(id))
		}
	}
	checkDistinct(o.Devices, "device", at.Add("devices"), r)
	slices.SortFunc(s.Place.Selected, cluster.DeviceID.Compare)
	if n := len(o.Devices); n > 0 && n < o.DevicesPerReplica {
		r.errorf(at.Add("devices"), "%d devices are selected, and each replica takes %d", n, o.DevicesPerReplica)
	}
}

// checkModelPartition reports fields that ask for more than the one slice that a replica takes.
func checkModelPartition(s *model.Spec, o *v1alpha1.ModelPlacement, at path, r reporter) {
	if o.Partition == "" {
		return
	}
	switch devices := max(1, s.Serving.Tensor) * max(1, s.Serving.Pipeline) * max(1, s.Serving.Data); {
	case s.Place.WholeNodes:
		r.errorf(at.Add("partition"), "a replica with unit: %s takes whole nodes, and no slice; leave one out", unitNode)
	case max(o.DevicesPerReplica, devices) > 1:
		r.errorf(at.Add("partition"), "slices are not combined: a replica takes one, not %d", max(o.DevicesPerReplica, devices))
	}
}

// deviceID parses node:type:index.
func deviceID(s string) (cluster.DeviceID, bool) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return cluster.DeviceID{}, false
	}
	i, err := strconv.Atoi(parts[2])
	return cluster.DeviceID{Node: parts[0], Type: parts[1], Index: i}, err == nil && i >= 0 && i < maxDevices
}
