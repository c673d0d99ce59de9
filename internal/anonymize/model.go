package anonymize

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate"
	"github.com/berth-project/berth/internal/estimate/backend"
	"github.com/berth-project/berth/internal/estimate/hf"
	"github.com/berth-project/berth/internal/manifest"
)

// FilesError is the error for models that are read from files.
type FilesError struct {
	Models []string // the IDs
}

func (e *FilesError) Error() string {
	return fmt.Sprintf("%s: the model is read from files, which cannot be part of the output; name a preset, or say how much memory it needs under memory and name no files, or leave it out", strings.Join(e.Models, ", "))
}

// checkModels returns an error if files of models are needed to decide.
func checkModels(b *manifest.Bundle) error {
	var out []string
	for _, o := range b.Models {
		if needsFiles(b, o) {
			out = append(out, convert.ModelID(o))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return &FilesError{out}
}

// needsFiles reports whether files decide how the model is placed. If its memory is given,
// its attention heads still limit how it is divided, unless it is divided by layers.
func needsFiles(b *manifest.Bundle, o *v1alpha1.Model) bool {
	s := &o.Spec
	for _, a := range s.Adapters {
		if a.Path != "" {
			return true
		}
	}
	if m := s.Memory; m != nil && (m.Device != nil || m.Total != nil) {
		byLayers := s.Source.GGUF != "" && s.Backend == ""
		return !byLayers && manifest.HasModelFiles(b, o)
	}
	return isFiles(&s.Source) || s.Draft != nil && isFiles(s.Draft)
}

// isFiles reports whether a source is files: a preset and a config are not.
func isFiles(s *v1alpha1.ModelSource) bool { return s.Preset == "" && s.Config == "" }

// reduceConfigs returns the configurations of the models without names: only what decides how
// much memory a model needs and how it can be divided.
func reduceConfigs(b *manifest.Bundle) (map[string]string, error) {
	out := map[string]string{}
	for _, o := range b.Models {
		for _, s := range []*v1alpha1.ModelSource{&o.Spec.Source, o.Spec.Draft} {
			if s == nil || s.Config == "" || s.Preset != "" {
				continue
			}
			weights, _ := convert.ConfigWeights(s)
			text, err := hf.Reduce(s.Config, weights, sameModel)
			if err != nil {
				return nil, fmt.Errorf("%s: source.config: %w", convert.ModelID(o), err)
			}
			out[configKey(s)] = text
		}
	}
	return out, nil
}

// configKey returns the key of a configuration in the result of reduceConfigs: what is needed of
// it may depend on the size of the weights.
func configKey(s *v1alpha1.ModelSource) string {
	weights, _ := convert.ConfigWeights(s)
	return fmt.Sprintf("%d %s", weights, s.Config)
}

// sameModel reports whether two models are decided alike. Names of architectures matter only if
// a backend has settings for them.
func sameModel(a, b *estimate.Model) bool {
	plain := func(m *estimate.Model) (out estimate.Model) {
		out = *m
		out.Assumed = nil
		if m.Architecture != nil && !backend.HasSettings(m.Architecture.Name) {
			own := *m.Architecture
			own.Name, out.Architecture = "", &own
		}
		return out
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

func (n berthObjects) model(o *v1alpha1.Model) *v1alpha1.Model {
	s := &o.Spec
	out := &v1alpha1.Model{TypeMeta: berthKind(v1alpha1.KindModel), ObjectMeta: n.meta(n.workloads.of(o.Name), o.Namespace, o.Labels)}
	out.CreationTimestamp = n.time(o.CreationTimestamp)
	out.Spec = v1alpha1.ModelSpec{
		Replicas: s.Replicas, Backend: s.Backend, BackendVersion: s.BackendVersion, Source: *n.source(&s.Source), Context: s.Context,
		Sequences: s.Sequences, BatchTokens: s.BatchTokens, MaxSequences: s.MaxSequences, Eager: s.Eager, DType: s.DType, Quantization: s.Quantization, GPUMemoryUtilization: s.GPUMemoryUtilization, Parallelism: s.Parallelism,
		KVCacheBits: s.KVCacheBits, MicroBatch: s.MicroBatch, FlashAttention: s.FlashAttention, FullWindowCache: s.FullWindowCache, Draft: optional(s.Draft, n.source), Memory: s.Memory, Resources: n.amounts(s.Resources),
		Adapters: each(s.Adapters, func(a v1alpha1.Adapter) v1alpha1.Adapter {
			return v1alpha1.Adapter{Name: n.adapters.of(a.Name), Memory: a.Memory}
		}),
		Placement: n.modelPlacement(&s.Placement),
		Queue:     n.queues.of(s.Queue), SchedulerName: n.schedulers.of(s.SchedulerName), Priority: s.Priority, Preemptible: s.Preemptible,
		StaleGrace: s.StaleGrace, PreemptionDelay: s.PreemptionDelay, Isolation: optional(s.Isolation, n.isolation),
		Tolerations: each(s.Tolerations, n.toleration),
	}
	out.Status = v1alpha1.ModelStatus{Group: o.Status.Group, Replicas: each(o.Status.Replicas, n.replica)}
	if g := o.Status.Group; g != nil && g.Resource != "" {
		group := *g
		group.Resource = n.resource(g.Resource)
		out.Status.Group = &group
	}
	return out
}

// source returns where a model is read from. Presets are part of Berth and keep their names.
func (n berthObjects) source(s *v1alpha1.ModelSource) *v1alpha1.ModelSource {
	if s.Preset != "" {
		n.presets[s.Preset] = true
	}
	return &v1alpha1.ModelSource{
		Preset: s.Preset, GGUF: n.file(s.GGUF), HuggingFace: n.file(s.HuggingFace), LocalPath: n.file(s.LocalPath), Files: n.file(s.Files),
		Config: n.configs[configKey(s)], Weights: s.Weights, Repository: n.file(s.Repository),
	}
}

func (n berthObjects) modelPlacement(p *v1alpha1.ModelPlacement) v1alpha1.ModelPlacement {
	return v1alpha1.ModelPlacement{
		Strategy: p.Strategy, Unit: p.Unit, Cells: each(p.Cells, n.cells.of), NodeSelector: n.labels(p.NodeSelector),
		Devices: each(p.Devices, n.deviceID), DevicesPerReplica: p.DevicesPerReplica, Partition: p.Partition, Distributed: p.Distributed,
		CPUOffload: p.CPUOffload, InstanceType: p.InstanceType, DeviceLayers: p.DeviceLayers,
	}
}

// deviceID returns a device that is written as node:type:index.
func (n berthObjects) deviceID(id string) string {
	node, rest, _ := strings.Cut(id, ":")
	return n.nodes.of(node) + ":" + rest
}

// replica returns a replica that exists. Berth itself names the tasks and forms of models.
func (n berthObjects) replica(r v1alpha1.ModelReplica) v1alpha1.ModelReplica {
	return v1alpha1.ModelReplica{
		Replica: r.Replica, State: r.State, Created: n.optionalTime(r.Created), Form: r.Form,
		Placements: each(r.Placements, func(p v1alpha1.TaskPlacement) v1alpha1.TaskPlacement { return n.placement(p, p.Task) }),
		TornSince:  n.optionalTime(r.TornSince), Evicted: n.optionalTime(r.Evicted),
		OffloadedLayers: r.OffloadedLayers, TotalLayers: r.TotalLayers,
	}
}
