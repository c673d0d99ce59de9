package main

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

type rules = apiextensionsv1.ValidationRules

// The rules say in CEL what the reader of manifests rejects (package convert, Queue), with
// functions that Kubernetes has since 1.28. The API server evaluates a rule even if another
// rule of the same object fails, so each rule accepts what another one rejects.
//
// They cannot say what depends on other objects: whether the parent exists, whether parents
// form a cycle or are nested too deep, and whether a name with a slash means devices, so that
// fractions and products of it are allowed. The scheduler reports all of these except the
// depth in the condition Active. The rules do not see how a number is spelled in YAML, either.
//
// An amount is an integer or a text. string(x) is the text of both. The rules do not read a
// quantity with a large exponent: this would expand all of its digits, and the API server
// would not answer for minutes.

const (
	// largeExponent is an exponent above 30 or below -30. The pattern has no end, so that
	// nothing that follows the exponent, such as a space, hides it.
	largeExponent = `[eE][+-]?0*(3[1-9]|[4-9][0-9]|[1-9][0-9]{2,})`
	// devices are resources that always mean devices.
	devices = `^(nvidia[.]com/gpu([.]shared)?|nvidia[.]com/mig-.*|amd[.]com/gpu|gpu[.]intel[.]com/(i915|xe)|habana[.]ai/gaudi|huawei[.]com/Ascend910)$`
	// inBytes are resources that are counted in bytes.
	inBytes = `^(memory|ephemeral-storage|hugepages-.*)$`
)

// isQuantity and quantity are CEL expressions about the amount x, which is an expression
// as well.
func isQuantity(x string) string {
	return `(!string(` + x + `).matches(r'` + largeExponent + `') && isQuantity(string(` + x + `).trim()))`
}

func quantity(x string) string { return `quantity(string(` + x + `).trim())` }

// isWhole is a CEL expression that is true if the quantity x equals the nearest whole number.
// Quantities from 2^52 on are taken for whole: numbers of CEL do not show their fractions.
func isWhole(x string) string {
	number := quantity(x) + `.asApproximateFloat()`
	return `(` + number + ` >= 4503599627370496.0 || sign(` + quantity(x) + `.sub(int(` + number + ` + 0.5))) == 0)`
}

// quantityRules are the rules of one amount. Also is a CEL expression that ends with an
// operator, for texts that are accepted besides quantities.
func quantityRules(also string) rules {
	return rules{
		{Rule: also + isQuantity("self"), Message: "want a quantity such as 8, 500m, 80Gi or 1.5Ti"},
		{Rule: also + "!" + isQuantity("self") + " || sign(" + quantity("self") + ") >= 0", Message: "the amount is negative"},
	}
}

// each returns a rule that every entry of a map meets. Names is a CEL expression for the
// map, and entry one about the variable name, which is the name of a resource. The message
// names one of the resources that do not meet the rule.
func each(names, entry, message, remedy string) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:              names + `.all(name, ` + entry + `)`,
		Message:           message + remedy,
		MessageExpression: `'` + message + `: ' + ` + names + `.filter(name, !(` + entry + `))[0] + '` + remedy + `'`,
	}
}

// nameRules are the rules of the names of resources.
var nameRules = rules{
	{
		Rule:    `self.all(name, name.matches(r'^[\pL\pM\pN\pP\pS ]*$'))`,
		Message: "a resource has characters in its name that cannot be printed; leave them out",
	},
	each("self", `!name.contains(':') || name.matches(r'^[^:]*/[^:]*:.')`,
		"only devices have products, and a product follows the colon", "; write a name such as nvidia.com/gpu:NVIDIA-L4, or leave the colon out"),
}

// amountRules are the rules of a map of resources to amounts.
var amountRules = rules{
	each("self", `!`+isQuantity("self[name]")+` || `+quantity("self[name]")+
		`.compareTo(quantity(name == 'cpu' || name.contains(':') || name.matches(r'`+devices+`') ? '1073741824' : '1Ei')) <= 0`,
		"the amount is too large", "; the most is 1073741824 for cores and devices, and 1Ei for other resources"),
	each("self", `name == 'cpu' || name.contains('/') || name.contains(':') || name.matches(r'`+inBytes+`') || !`+isQuantity("self[name]")+
		` || `+isWhole("self[name]"),
		"the amount is not a whole number, and the resource is counted in whole numbers", ""),
}

// quotaRules are the rules about the fields of a spec together.
var quotaRules = rules{quotaRule()}

func quotaRule() apiextensionsv1.ValidationRule {
	out := each("self.quota", `!`+isQuantity("self.quota[name]")+` || [name, name.split(':')[0]].all(of, !(of in self.limits) || !`+isQuantity("self.limits[of]")+
		` || `+quantity("self.quota[name]")+`.compareTo(`+quantity("self.limits[of]")+`) <= 0)`,
		"the quota is above the limit of the resource, or of all products of it", "; raise the limit or lower the quota")
	out.Rule = `!has(self.quota) || !has(self.limits) || ` + out.Rule
	return out
}

// objectRules are the rules about the name of the queue.
var objectRules = rules{
	{
		Rule:    `!has(self.spec.parent) || self.spec.parent != self.metadata.name`,
		Message: "the queue is its own parent; name another, or leave it out",
	},
	{
		Rule:    `!has(self.spec.parent) || self.spec.parent != 'default'`,
		Message: "queue default cannot be a parent: it holds the jobs that name no queue; name another parent",
	},
	{
		Rule:    `self.metadata.name != 'default' || !has(self.spec.parent) || self.spec.parent == ''`,
		Message: "the default queue is at the top; leave the parent out",
	},
}

var durationRules = rules{{
	Rule:    `!self.matches(r'` + durationPattern + `') || duration(self) > duration('0s')`,
	Message: "want a time above 0, such as 10m; if it is left out, the value of the queue above applies",
}}

// usageRules are the rules of one entry of past use.
var usageRules = rules{
	{
		Rule:    `self.to > self.from`,
		Message: "the interval ends before it begins, or when it begins; swap from and to, or leave the entry out",
	},
	{
		Rule:    `[self.from, self.to].all(t, t > timestamp('1970-01-01T00:00:00Z') && t < timestamp('2201-01-01T00:00:00Z'))`,
		Message: "want times from 1970 to 2200, after 1970-01-01T00:00:00Z",
	},
}
