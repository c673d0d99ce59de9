package main

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The rules say in CEL what the reader of manifests rejects (package convert, Model). See
// rules.go for what they have in common with those of queues. They do not say what depends on
// the library of models, such as the names of presets, or on files, and nothing about the text
// of config and the fields of template: the webhook and the controller report these.
//
// There are no rules about changes: a model may be edited while it runs.

// Names of backends, as they are written in lower case.
var (
	layeredBackends = []string{"llamacpp", "llama.cpp", "llama-box"}
	backends        = append([]string{"vllm", "sglang", "mindie", "voxbox", "custom"}, layeredBackends...)
)

// given is a CEL expression that is true if the text has a value. Objects around it are given
// as parts of the path.
func given(path ...string) string {
	out, at := "", "self"
	for _, name := range path {
		at += "." + name
		out += "has(" + at + ") && "
	}
	return "(" + out + at + " != '')"
}

// number is a CEL expression for the number at the path, and for otherwise if it is not given
// or 0.
func number(otherwise string, path ...string) string {
	out, at := "", "self"
	for i, name := range path {
		if at += "." + name; i > 0 {
			out += " && "
		}
		out += "has(" + at + ")"
	}
	return "(" + out + " && " + at + " > 0 ? " + at + " : " + otherwise + ")"
}

// isSet is a CEL expression that is true if the flag at the path is set.
func isSet(path ...string) string {
	out, at := "", "self"
	for _, name := range path {
		at += "." + name
		out += "has(" + at + ") && "
	}
	return "(" + out + at + ")"
}

// backendOf is a CEL expression for the backend of a spec, in lower case. It is preset for a
// preset without a backend, which is served by vllm, or by voxbox if it is a speech model.
var backendOf = `(` + given("backend") + ` ? self.backend.lowerAscii() : ` + given("source", "gguf") + ` || ` +
	`(has(self.source) && has(self.source.localPath) && self.source.localPath.lowerAscii().endsWith('.gguf')) ? 'llamacpp' : ` +
	given("source", "preset") + ` ? 'preset' : 'vllm')`

// served is a rule about a setting that only some backends have. Unset is a CEL expression that
// is true if the setting is not used.
func served(unset, message string, by ...string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{Rule: unset + ` || ` + backendOf + ` in ` + oneOf(by...), Message: message}
}

var (
	tensor     = number("1", "parallelism", "tensor")
	pipeline   = number("1", "parallelism", "pipeline")
	data       = number("1", "parallelism", "data")
	product    = `(` + tensor + ` * ` + pipeline + ` * ` + data + `)`
	perReplica = number("0", "placement", "devicesPerReplica")

	wholeNodes = `(has(self.placement) && has(self.placement.unit) && self.placement.unit == 'Node')`
	hasMemory  = `(has(self.memory) && (has(self.memory.device) || has(self.memory.total)))`
)

const sourceMessage = "say under source where the model comes from: preset, gguf, huggingFace, localPath or config; or say how much memory it needs under memory"

// specRules are the rules about the object.
var specRules = rules{{Rule: `has(self.spec)`, Message: "there is no spec; " + sourceMessage}}

// modelRules are the rules about the fields of a spec together.
var modelRules = rules{
	{
		Rule: hasMemory + ` || ` + given("source", "preset") + ` || ` + given("source", "gguf") + ` || ` + given("source", "huggingFace") + ` || ` +
			given("source", "localPath") + ` || ` + given("source", "config"),
		Message: sourceMessage,
	},
	{
		Rule:    product + fmt.Sprintf(` <= %d`, maxParallel),
		Message: fmt.Sprintf("parallelism is tensor × pipeline × data devices; the most is %d", maxParallel),
	},
	{
		Rule:    perReplica + ` == 0 || ` + number("0", "parallelism", "tensor") + ` + ` + number("0", "parallelism", "pipeline") + ` == 0 || ` + perReplica + ` == ` + product,
		Message: "placement.devicesPerReplica is another number of devices than parallelism: tensor × pipeline × data; leave one out",
	},
	{
		Rule: perReplica + ` == 0 || ` + number("0", "parallelism", "tensor") + ` + ` + number("0", "parallelism", "pipeline") + ` > 0 || ` +
			perReplica + ` % ` + data + ` == 0`,
		Message: "placement.devicesPerReplica cannot be divided over the data-parallel ranks of parallelism.data",
	},
	{
		Rule: `!` + wholeNodes + ` || ` + number("0", "parallelism", "tensor") + ` + ` + number("0", "parallelism", "pipeline") + ` + ` +
			number("0", "parallelism", "data") + ` == 0`,
		Message: "with unit: Node a replica takes all devices of its nodes, and its parallelism follows from them; leave parallelism out",
	},
	{
		Rule:    `!` + given("placement", "partition") + ` || ` + product + ` == 1`,
		Message: "slices are not combined: a replica with placement.partition takes one, and parallelism more; leave one out",
	},
	{
		Rule:    `!(has(self.dtype) && self.dtype in ['float32', 'float']) || !` + given("quantization"),
		Message: "numbers of 32 bits are not quantised; leave dtype or quantization out",
	},
	{
		Rule:    number("0", "maxSequences") + ` == 0 || ` + number("0", "maxSequences") + ` >= ` + number("0", "sequences"),
		Message: "a server that processes at most maxSequences at once does not hold that many sequences; raise it, or set fewer sequences",
	},
	{
		Rule:    `has(self.flashAttention) && !self.flashAttention ? ` + number("16", "kvCacheBits") + ` == 16 : true`,
		Message: "a cache of less than 16 bits needs flash attention; leave flashAttention or kvCacheBits out",
	},
	served(number("16", "kvCacheBits")+" != 4", "the cache of this backend has 16 or 8 bits; leave kvCacheBits out", append([]string{"custom", "voxbox", "preset"}, layeredBackends...)...),
	served(`!has(self.gpuMemoryUtilization)`, "the backend claims the memory that it needs, not a part of each device; leave gpuMemoryUtilization out", "vllm", "sglang", "mindie", "preset"),
	{
		Rule:    `!has(self.gpuMemoryUtilization) || ` + backendOf + ` != 'sglang' || !` + isQuantity("self.gpuMemoryUtilization") + ` || ` + quantity("self.gpuMemoryUtilization") + `.compareTo(quantity('1')) < 0`,
		Message: "the share of sglang is for weights and cache alone, and must leave room for the rest; want less than 1, such as 0.88",
	},
	served(data+` == 1`, "the backend has no data-parallel ranks; for more copies of the model raise replicas", "vllm", "sglang", "preset"),
	served(`!`+isSet("parallelism", "expert"), "the backend does not divide experts; leave parallelism.expert out", "vllm", "sglang", "preset"),
	served(number("0", "microBatch")+` == 0`, "only llamacpp has microBatch; leave it out", layeredBackends...),
	served(`!has(self.flashAttention)`, "only llamacpp has flashAttention; leave it out", layeredBackends...),
	served(`!`+isSet("fullWindowCache"), "only llamacpp has fullWindowCache; leave it out", layeredBackends...),
	served(`!`+given("server", "distribution"), "only vllm has server.distribution; leave it out", "vllm", "preset"),
}

var backendRules = rules{{
	Rule:    `self == '' || self.lowerAscii() in ` + oneOf(backends...),
	Message: "no backend has this name; want vllm, sglang, mindie, voxbox, llamacpp or custom",
}}

// shareRule is the rule of a part of a device.
var shareRule = apiextensionsv1.ValidationRule{
	Rule:    `!` + isQuantity("self") + ` || sign(` + quantity("self") + `) > 0 && ` + quantity("self") + `.compareTo(quantity('1')) <= 0`,
	Message: "want a share above 0 and at most 1, such as 0.5",
}

// mostRule is the rule of an amount of memory that may be 0.
var mostRule = apiextensionsv1.ValidationRule{
	Rule:    `!` + isQuantity("self") + ` || sign(` + quantity("self") + `) >= 0 && ` + quantity("self") + `.compareTo(quantity('8Ti')) <= 0`,
	Message: "the amount is negative, or too large for a model: the most is 8Ti",
}

const memoryMessage = "want more than 0 and at most 8Ti; leave it out to have it estimated"

// sizeRule is the rule of an amount of memory above 0.
func sizeRule(message string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:    `!` + isQuantity("self") + ` || sign(` + quantity("self") + `) > 0 && ` + quantity("self") + `.compareTo(quantity('8Ti')) <= 0`,
		Message: message,
	}
}

var anySource = `[` + given("preset") + `, ` + given("gguf") + `, ` + given("huggingFace") + `, ` + given("localPath") + `, ` + given("config") + `]`

// sourceRules are the rules of one source.
var sourceRules = rules{
	{
		Rule:    anySource + `.filter(x, x).size() <= 1`,
		Message: "preset, gguf, huggingFace, localPath and config each say where the model comes from; keep one",
	},
	{
		Rule:    `!` + given("config") + ` || has(self.weights)`,
		Message: "the size of the weights is not part of a config.json; write how large all safetensors files are together beside it, such as weights: 16Gi",
	},
	{
		Rule:    `!has(self.weights) || ` + given("config"),
		Message: "weights is the size of the model that config describes; write config beside it, or leave it out",
	},
}

// draftRule is the rule of a draft, for which a source is required.
var draftRule = apiextensionsv1.ValidationRule{
	Rule:    anySource + `.exists(x, x)`,
	Message: "say where the draft comes from: preset, gguf, huggingFace, localPath or config",
}

var adapterRules = rules{{
	Rule:    given("path") + ` != has(self.memory)`,
	Message: "say either memory, or path, which is read",
}}

var memoryRules = rules{{
	Rule:    `!has(self.device) || !has(self.total)`,
	Message: "device is of each device, total of all together; keep one",
}}

// requestRules are the rules of the resources of a task.
var requestRules = rules{
	{Rule: `!('' in self)`, Message: "a resource without a name"},
	nameRules[0],
	each("self", `!name.matches(r'`+devices+`')`, "devices are counted by the needs of the model itself", "; for a fixed number write placement.devicesPerReplica"),
	each("self", `!`+isQuantity("self[name]")+` || `+quantity("self[name]")+`.compareTo(quantity(name == 'cpu' ? '1073741824' : '1Ei')) <= 0`,
		"the amount is too large", "; the most is 1073741824 for cores, and 1Ei for other resources"),
	each("self", `name == 'cpu' || name.matches(r'`+inBytes+`') || !`+isQuantity("self[name]")+` || `+isWhole("self[name]"),
		"the amount is not a whole number, and the resource is counted in whole numbers", ""),
}

// keyRules are the rules of the keys of labels.
var keyRules = rules{
	each("self", `name.size() <= 317 && name.matches(r'^`+labelKey+`$')`, "this is not a valid label key", "; write name or domain/name"),
}

// placementRules are the rules about the fields of a placement together.
var placementRules = rules{
	{
		Rule:    `!` + given("instanceType") + ` || has(self.unit) && self.unit == 'Node'`,
		Message: "an instance type needs unit: Node beside it",
	},
	{
		Rule: `!` + given("instanceType") + ` || !has(self.nodeSelector) || !('node.kubernetes.io/instance-type' in self.nodeSelector) || ` +
			`self.nodeSelector['node.kubernetes.io/instance-type'] == self.instanceType`,
		Message: "nodeSelector already asks for another instance type; keep one",
	},
	{
		Rule:    `!` + given("partition") + ` || !has(self.unit) || self.unit != 'Node'`,
		Message: "a replica with unit: Node takes whole nodes, and no slice; leave one out",
	},
	{
		Rule:    `!` + given("partition") + ` || ` + number("1", "devicesPerReplica") + ` == 1`,
		Message: "slices are not combined: a replica takes one; leave devicesPerReplica out",
	},
	{
		Rule:    `!has(self.devices) || self.devices.size() == 0 || self.devices.size() >= ` + number("0", "devicesPerReplica"),
		Message: "fewer devices are selected than each replica takes",
	},
}

var isolationRules = rules{{
	Rule:    `!` + given("session") + ` || has(self.gpu) && self.gpu == 'SessionExclusive'`,
	Message: "a session needs gpu: SessionExclusive beside it",
}}

var tolerationRules = rules{
	{
		Rule:    given("key") + ` || has(self.operator) && self.operator == 'Exists'`,
		Message: "a toleration without a key tolerates everything only with operator: Exists",
	},
	{
		Rule:    `!has(self.operator) || self.operator != 'Exists' || !` + given("value"),
		Message: "operator Exists compares no value; leave it out",
	},
}

var delayRules = rules{{
	Rule:    `self.matches(r'` + delayPattern + `')`,
	Message: "want a duration such as 30s or 1h30m",
}, {
	Rule:    `!self.matches(r'` + delayPattern + `') || duration(self) <= duration('100000h')`,
	Message: "want 100000h at most, such as 5m; a negative time means without limit",
}}

var cacheRules = rules{
	{
		Rule:    given("claim") + ` != ` + given("hostPath"),
		Message: "say either claim, the name of a PersistentVolumeClaim, or hostPath, a directory of the nodes",
	},
}

// templateRules are the rules about fields that Berth sets itself.
var templateRules = rules{
	{
		Rule:    `!` + given("spec", "schedulerName"),
		Message: "spec.schedulerName: Berth sets it, to the name of its scheduler; leave it out, and write schedulerName of the model to choose a profile",
	},
	{
		Rule:    `!` + given("spec", "nodeName"),
		Message: "spec.nodeName: the scheduler chooses the node; leave it out, and restrict the nodes with placement.nodeSelector",
	},
}
