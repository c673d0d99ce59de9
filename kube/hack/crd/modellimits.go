package main

import (
	"strconv"

	"github.com/berth-project/berth/cluster"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Limits of models that the reader of manifests does not have. They bound the cost of the
// validation rules, the size of the status, or what a user of a cluster may claim.
const (
	maxPath        = 4096 // characters
	maxText        = 256  // characters of other texts
	maxAdapters    = 256
	maxTolerations = 64
	maxSelector    = 64   // labels
	maxList        = 64   // cells and secrets
	maxSelected    = 1024 // devices
	maxParts       = 64
	maxAssumed     = 256
	maxPriority    = 1_000_000_000 // of a PriorityClass of users; those of Kubernetes itself are above it
)

// Limits of the reader of manifests (package convert, Model).
const (
	maxReplicas   = 10_000
	maxContext    = 100_000_000
	maxSequences  = 1_000_000
	maxParallel   = 4096
	maxLayers     = 4096
	maxMicroBatch = 65536
	maxConfig     = 512 << 10
	maxRepository = 200
	maxPort       = 65535
	maxDevices    = 1024 // of a node
	maxNodes      = 64   // of a replica
	maxLabelValue = 63
)

// Patterns of texts as the reader of manifests accepts them.
const (
	labelValuePattern = `^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`
	labelKey          = `([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?`
	versionPattern    = `^([vb]?[0-9]{1,9}([.][0-9]{1,9}){0,3}([.-]?(a|alpha|b|beta|rc|dev|post)[.]?[0-9]{0,9})?([+][a-z0-9.]{1,40})?)?$` // in lower case
	repositoryPattern = `^([A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?(/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?)?)?$`
	devicePattern     = `^[^:]+:[^:]+:([+]?0*([0-9]{1,3}|10[01][0-9]|102[0-3])|-0+)$`
	// delayPattern is a duration of Go.
	delayPattern = `^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
)

// modelLimits returns what the Go types of a Model do not say.
func modelLimits() map[string]func(*schema) {
	out := withConditions(map[string]func(*schema){
		"Model.spec": func(s *schema) { s.XValidations = modelRules },
		"ModelSpec.replicas": func(s *schema) {
			s.Default = raw("1")
			limitRange(0, maxReplicas)(s)
		},
		"ModelSpec.backend": func(s *schema) {
			s.MaxLength, s.XValidations = new(int64(maxText)), backendRules
		},
		"ModelSpec.backendVersion": limitText(`self.lowerAscii().matches(r'`+versionPattern+`')`, "this is not a version; write it as in 0.8.5, 2.1.rc2 or 0.5.1.post3", maxText),
		"ModelSpec.context":        limitRange(0, maxContext),
		"ModelSpec.sequences":      limitRange(0, maxSequences),
		"ModelSpec.batchTokens":    limitRange(0, maxContext),
		"ModelSpec.maxSequences":   limitRange(0, maxSequences),
		"ModelSpec.dtype":          limitWords("auto", "bfloat16", "float16", "float32", "half", "float"),
		"ModelSpec.quantization":   limitWords("fp8", "int8", "bitsandbytes"),
		"ModelSpec.kvCacheBits": func(s *schema) {
			for _, bits := range []string{"0", "16", "8", "4"} {
				s.Enum = append(s.Enum, *raw(bits))
			}
		},
		"ModelSpec.microBatch":           limitRange(0, maxMicroBatch),
		"ModelSpec.gpuMemoryUtilization": limitQuantity(shareRule),
		"ModelSpec.source":               func(s *schema) { s.XValidations = sourceRules },
		"ModelSpec.draft":                func(s *schema) { s.XValidations = append(rules{draftRule}, sourceRules...) },
		"ModelSpec.adapters": func(s *schema) {
			s.MaxItems, s.XListType, s.XListMapKeys = new(int64(maxAdapters)), new("map"), []string{"name"}
			s.Items.Schema.XValidations = adapterRules
		},
		"ModelSpec.memory": func(s *schema) { s.XValidations = memoryRules },
		"ModelSpec.resources": func(s *schema) {
			s.MaxProperties, s.XValidations = new(int64(maxResources)), requestRules
		},
		"ModelSpec.placement": func(s *schema) {
			s.Default = raw("{}")
			s.XValidations = placementRules
		},
		"ModelSpec.queue":           func(s *schema) { s.MaxLength = new(int64(maxName)) },
		"ModelSpec.schedulerName":   func(s *schema) { s.MaxLength = new(int64(maxName)) },
		"ModelSpec.priority":        limitRange(-maxPriority, maxPriority),
		"ModelSpec.staleGrace":      limitDelay,
		"ModelSpec.preemptionDelay": limitDelay,
		"ModelSpec.isolation":       func(s *schema) { s.XValidations = isolationRules },
		"ModelSpec.tolerations": func(s *schema) {
			s.MaxItems, s.XListType = new(int64(maxTolerations)), new("atomic")
			s.Items.Schema.XValidations = tolerationRules
		},
		"ModelSpec.template": limitTemplate,

		"ModelSource.preset":      func(s *schema) { s.MaxLength = new(int64(maxText)) },
		"ModelSource.gguf":        func(s *schema) { s.MaxLength = new(int64(maxPath)) },
		"ModelSource.huggingFace": func(s *schema) { s.MaxLength = new(int64(maxPath)) },
		"ModelSource.localPath":   func(s *schema) { s.MaxLength = new(int64(maxPath)) },
		"ModelSource.config":      func(s *schema) { s.MaxLength = new(int64(maxConfig)) },
		"ModelSource.weights":     limitQuantity(sizeRule("want how large all safetensors files are together, such as 16Gi; the most is 8Ti")),
		"ModelSource.repository":  limitText(`self.matches(r'`+repositoryPattern+`')`, "this is not the name of a repository: write owner/name, such as Qwen/Qwen3-8B", maxRepository),
		"ModelSource.files":       func(s *schema) { s.MaxLength = new(int64(maxPath)) },

		"Parallelism.tensor":   limitRange(0, maxParallel),
		"Parallelism.pipeline": limitRange(0, maxParallel),
		"Parallelism.data":     limitRange(0, maxParallel),

		"Adapter.name":   func(s *schema) { s.MinLength, s.MaxLength = new(int64(1)), new(int64(maxText)) },
		"Adapter.path":   func(s *schema) { s.MaxLength = new(int64(maxPath)) },
		"Adapter.memory": limitQuantity(mostRule),

		"ModelMemory.device": limitQuantity(sizeRule(memoryMessage)),
		"ModelMemory.total":  limitQuantity(sizeRule(memoryMessage)),
		"ModelMemory.host":   limitQuantity(sizeRule(memoryMessage)),

		"Isolation.cpu":     limitWords(cluster.CPUClasses...),
		"Isolation.gpu":     limitWords(cluster.GPUClasses...),
		"Isolation.session": func(s *schema) { s.MaxLength = new(int64(maxText)) },

		"Toleration.key":      limitText(`self == '' || self.matches(r'^`+labelKey+`$')`, "this is not a valid label key: write name or domain/name", maxName+1+maxLabelValue),
		"Toleration.operator": limitWords("Equal", "Exists"),
		"Toleration.value":    func(s *schema) { s.MaxLength = new(int64(maxText)) },
		"Toleration.effect":   limitWords(cluster.Effects...),
	})
	addPlacementLimits(out)
	addServerLimits(out)
	addModelStatusLimits(out)
	return out
}

func addPlacementLimits(out map[string]func(*schema)) {
	out["ModelPlacement.strategy"] = func(s *schema) {
		limitWords("Pack", "Spread", "Binpack")(s)
		s.Default = raw(`"Pack"`)
	}
	out["ModelPlacement.unit"] = func(s *schema) {
		limitWords("Device", "Node")(s)
		s.Default = raw(`"Device"`)
	}
	out["ModelPlacement.cells"] = func(s *schema) {
		limitSet(maxList, maxText)(s)
		s.Items.Schema.XValidations = rules{{Rule: `self.trim() != ''`, Message: "a cell is missing"}}
	}
	out["ModelPlacement.nodeSelector"] = func(s *schema) {
		limitLabelValue(s.AdditionalProperties.Schema)
		s.MaxProperties, s.XValidations = new(int64(maxSelector)), keyRules
	}
	out["ModelPlacement.devices"] = func(s *schema) {
		limitSet(maxSelected, maxText)(s)
		s.Items.Schema.XValidations = rules{{Rule: `self.matches(r'` + devicePattern + `')`, Message: "this is not a device: write node:type:index, such as gpu-1:cuda:0"}}
	}
	out["ModelPlacement.devicesPerReplica"] = limitRange(0, maxParallel)
	out["ModelPlacement.partition"] = func(s *schema) { s.MaxLength = new(int64(maxText)) }
	out["ModelPlacement.instanceType"] = limitLabelValue
	out["ModelPlacement.deviceLayers"] = limitRange(0, maxLayers)
}

func addServerLimits(out map[string]func(*schema)) {
	out["ModelServer.image"] = limitText(`!self.matches(r'[ \t\r\n]')`, "this is not an image: write one such as vllm/vllm-openai:v0.11.2", maxPath)
	out["ModelServer.port"] = limitRange(0, maxPort)
	out["ModelServer.distribution"] = limitWords("Ray", "Native")
	out["ModelServer.cache"] = func(s *schema) { s.XValidations = cacheRules }
	out["ModelServer.imagePullSecrets"] = func(s *schema) {
		limitSet(maxList, maxName)(s)
		s.Items.Schema.MinLength, s.Items.Schema.Pattern = new(int64(1)), namePattern
	}
	out["ModelCache.claim"] = limitNameOf
	out["ModelCache.hostPath"] = limitVolumePath
	out["ModelCache.mountPath"] = limitVolumePath
	out["SecretKey.name"] = func(s *schema) {
		limitNameOf(s)
		s.MinLength = new(int64(1))
	}
	out["SecretKey.key"] = limitText(`self.matches(r'^[A-Za-z0-9._-]*$') && self != '.' && !self.startsWith('..')`,
		"this is not a key of a secret: use letters, digits, -, _ and .", maxName)
}

func addModelStatusLimits(out map[string]func(*schema)) {
	out["ModelStatus.conditions"] = limitConditions
	out["ModelStatus.replicas"] = func(s *schema) {
		s.MaxItems, s.XListType, s.XListMapKeys = new(int64(maxReplicas+1)), new("map"), []string{"replica"}
	}
	for _, field := range []string{"observedGeneration", "currentReplicas", "readyReplicas", "nodesPerReplica"} {
		out["ModelStatus."+field] = limitCount
	}
	out["ModelStatus.workloads"] = func(s *schema) {
		s.MaxItems, s.XListType, s.XListMapKeys = new(int64(maxReplicas+1)), new("map"), []string{"kind", "name"}
	}
	out["ModelEstimate.perDevice"] = limitReportedMemory
	out["ModelEstimate.parts"] = func(s *schema) {
		s.MaxItems, s.XListType, s.XListMapKeys = new(int64(maxParts)), new("map"), []string{"name"}
	}
	out["ModelEstimate.assumed"] = func(s *schema) { s.MaxItems, s.XListType = new(int64(maxAssumed)), new("atomic") }
	out["MemoryPart.memory"] = limitReportedMemory
	out["ModelWorkload.kind"] = func(s *schema) { s.Enum = words("Deployment", "LeaderWorkerSet") }
	out["ModelWorkload.replicas"] = limitCount
	out["ModelGroup.count"] = limitRange(1, maxDevices)
	out["ModelGroup.memory"] = limitQuantity(apiextensionsv1.ValidationRule{
		Rule:    `!` + isQuantity("self") + ` || sign(` + quantity("self") + `) > 0 && ` + quantity("self") + `.compareTo(quantity('16Ti')) <= 0`,
		Message: "say the memory of each device, such as 80Gi; no device has more than 16Ti",
	})
	out["ModelGroup.nodesPerReplica"] = limitRange(1, maxNodes)
	out["Sharing.strategy"] = func(s *schema) { s.Enum = words("time-slicing", "mps", "") }
	out["ModelReplica.replica"] = limitRange(0, maxReplicas)
	out["ModelReplica.state"] = limitWords(cluster.HealthRunning, cluster.HealthStarting, cluster.HealthFailed)
	out["ModelReplica.offloadedLayers"] = limitCount
	out["ModelReplica.totalLayers"] = limitCount
	out["TaskPlacement.state"] = limitWords("Running", "Releasing", "Succeeded", "Failed")
}

func limitRange(least, most int) func(*schema) {
	return func(s *schema) { s.Minimum, s.Maximum = new(float64(least)), new(float64(most)) }
}

// limitWords allows some words, and "", which means the default.
func limitWords[T ~string](allowed ...T) func(*schema) {
	return func(s *schema) { s.Enum = append(words(""), words(allowed...)...) }
}

// limitText limits a text by a rule of CEL. A pattern of the schema would have no message that
// says what to write instead.
func limitText(rule, message string, most int) func(*schema) {
	return func(s *schema) {
		s.MaxLength, s.XValidations = new(int64(most)), rules{{Rule: rule, Message: message}}
	}
}

func limitLabelValue(s *schema) {
	limitText(`self.matches(r'`+labelValuePattern+`')`,
		"this is not a valid label value: use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit", maxLabelValue)(s)
}

func limitNameOf(s *schema) {
	limitText(`self.matches(r'`+namePattern+`')`,
		"this is not a valid name: use lower-case letters, digits, - and ., and begin and end with a letter or digit", maxName)(s)
}

func limitVolumePath(s *schema) {
	limitText(`self == '' || self.startsWith('/') && !self.contains(':') && !(self + '/').contains('/../')`,
		"want an absolute path such as /var/lib/models, without a colon and without a step upwards (..)", maxPath)(s)
}

// limitSet limits a list of different texts.
func limitSet(items, length int) func(*schema) {
	return func(s *schema) {
		s.MaxItems, s.XListType, s.Items.Schema.MaxLength = new(int64(items)), new("set"), new(int64(length))
	}
}

// limitQuantity replaces the rule about the sign of a quantity.
func limitQuantity(rule apiextensionsv1.ValidationRule) func(*schema) {
	return func(s *schema) { s.XValidations = rules{quantityRules("")[0], rule} }
}

// limitReportedMemory limits an amount that the controller computes.
func limitReportedMemory(s *schema) {
	s.XValidations, s.Pattern = nil, reportedPattern
}

func limitDelay(s *schema) { s.Pattern, s.XValidations = "", delayRules }

// limitTemplate makes the fields visible to the rules that Berth sets itself. All other fields
// are those of Kubernetes, and are not described here.
func limitTemplate(s *schema) {
	spec := schema{
		Type: "object", Description: "Spec is the spec of the pods.", XPreserveUnknownFields: new(true),
		Properties: map[string]schema{
			"schedulerName": {Type: "string", Description: "SchedulerName must not be set.", MaxLength: new(int64(maxName))},
			"nodeName":      {Type: "string", Description: "NodeName must not be set.", MaxLength: new(int64(maxName))},
		},
	}
	s.Properties = map[string]schema{"spec": spec}
	s.XValidations = templateRules
}

// oneOf returns a list of CEL with the texts.
func oneOf(texts ...string) string {
	out := "["
	for i, text := range texts {
		if i > 0 {
			out += ", "
		}
		out += strconv.Quote(text)
	}
	return out + "]"
}
