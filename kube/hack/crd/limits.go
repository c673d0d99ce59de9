package main

import (
	"math"
	"strconv"

	"github.com/berth-project/berth/cluster"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Limits that the reader of manifests does not have. They bound the cost of the validation
// rules, which the API server estimates before it accepts the definition.
const (
	maxResources  = 64  // named in one quota, limit or weight
	maxUsage      = 256 // entries of past use
	maxConditions = 8
)

// Limits of the reader of manifests.
const (
	maxName     = 253
	maxWeight   = 100_000
	maxQuantity = 40 // characters
)

// namePattern is a name as the reader of manifests accepts it, or "".
const namePattern = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`

// reportedPattern is a quantity without sign, fraction and exponent, or unlimited.
const reportedPattern = `^(unlimited|[0-9]+([numkMGTPE]|[KMGTPE]i)?)$`

// durationPattern is a duration of Go, without a minus sign.
const durationPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

// queueLimits returns what the Go types of a Queue do not say.
func queueLimits() map[string]func(*schema) {
	return withConditions(map[string]func(*schema){
		"Queue.spec": func(s *schema) {
			s.Default = raw("{}") // the defaults of its fields apply if it is missing
			s.XValidations = quotaRules
		},
		"QueueSpec.parent": func(s *schema) {
			s.MaxLength, s.Pattern = new(int64(maxName)), namePattern
		},
		"QueueSpec.tier": func(s *schema) {
			s.Enum = append(words(""), words(cluster.Tiers...)...) // an empty tier is the default too
			s.Default = &words(cluster.TierStandard)[0]
		},
		"QueueSpec.priority": func(s *schema) {
			s.Default = raw("0")
			s.Minimum, s.Maximum = new(float64(math.MinInt32)), new(float64(math.MaxInt32))
		},
		"QueueSpec.weight": func(s *schema) {
			s.Default = raw("1")
			limitWeight(s)
		},
		"QueueSpec.overQuotaWeight": func(s *schema) {
			limitWeight(s.AdditionalProperties.Schema)
			s.MaxProperties, s.XValidations = new(int64(maxResources)), nameRules
		},
		"QueueSpec.quota":       limitAmounts,
		"QueueSpec.limits":      limitAmounts,
		"QueueStatus.quota":     limitReported,
		"QueueStatus.share":     limitReported,
		"QueueStatus.pending":   limitReported,
		"QueueUsage.resources":  limitAmounts,
		"QueueStatus.allocated": limitReported,
		"QueueStatus.usage": func(s *schema) {
			s.MaxItems, s.XListType = new(int64(maxUsage)), new("atomic")
			s.Items.Schema.XValidations = usageRules
		},
		"QueueStatus.observedGeneration": limitCount,
		"QueueStatus.pendingJobs":        limitCount,
		"QueueStatus.conditions":         limitConditions,
	})
}

// withConditions adds the limits of conditions.
func withConditions(limits map[string]func(*schema)) map[string]func(*schema) {
	limits["Condition.type"] = func(s *schema) { s.MaxLength = new(int64(316)) }
	limits["Condition.status"] = func(s *schema) { s.Enum = words("True", "False", "Unknown") }
	limits["Condition.reason"] = func(s *schema) { s.MinLength, s.MaxLength = new(int64(1)), new(int64(1024)) }
	limits["Condition.message"] = func(s *schema) { s.MaxLength = new(int64(32768)) }
	limits["Condition.observedGeneration"] = limitCount
	return limits
}

func limitConditions(s *schema) {
	s.MaxItems, s.XListType, s.XListMapKeys = new(int64(maxConditions)), new("map"), []string{"type"}
}

// amountSchema returns the schema of an amount of a resource. The rules about its size are
// those of the map that it is in, because they depend on the name of the resource.
func amountSchema(unlimited bool) schema {
	s := schema{XIntOrString: true, AnyOf: []schema{{Type: "integer"}, {Type: "string"}}, MaxLength: new(int64(maxQuantity))}
	if s.XValidations = quantityRules(""); unlimited {
		s.XValidations = quantityRules("self == 'unlimited' || ")
	}
	return s
}

func durationSchema() schema {
	return schema{Type: "string", MaxLength: new(int64(64)), Pattern: durationPattern, XValidations: durationRules}
}

func limitAmounts(s *schema) {
	s.MaxProperties = new(int64(maxResources))
	s.XValidations = append(append(apiextensionsv1.ValidationRules{}, nameRules...), amountRules...)
}

// limitReported limits amounts that the scheduler computes. It may report more resources
// than one queue names, and amounts above those of a quota. It writes them in their shortest
// form.
func limitReported(s *schema) {
	s.MaxProperties = new(int64(4 * maxResources))
	s.AdditionalProperties.Schema.XValidations = nil
	s.AdditionalProperties.Schema.Pattern = reportedPattern
}

func limitWeight(s *schema) { s.Minimum, s.Maximum = new(0.0), new(float64(maxWeight)) }

func limitCount(s *schema) { s.Minimum = new(0.0) }

// raw returns a value that is written as JSON.
func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// words returns the texts as JSON.
func words[T ~string](texts ...T) []apiextensionsv1.JSON {
	var out []apiextensionsv1.JSON
	for _, text := range texts {
		out = append(out, *raw(strconv.Quote(string(text))))
	}
	return out
}
