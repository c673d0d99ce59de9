package main

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const header = "# Written by `make crd`; change api/v1alpha1 and kube/hack/crd instead.\n"

// kind is a kind of object that has a definition.
type kind struct {
	name, plural, singular, short string
	scope                         apiextensionsv1.ResourceScope
	object                        reflect.Type
	limits                        func() map[string]func(*schema) // what the Go types do not say, by TYPE.field
	rules                         rules                           // of the whole object
	columns                       []column
	scale                         *apiextensionsv1.CustomResourceSubresourceScale
}

// column is what kubectl get shows. Those with a priority above 0 are shown with -o wide.
type column = apiextensionsv1.CustomResourceColumnDefinition

// kinds are all kinds that have definitions.
var kinds = []kind{
	{
		name: v1alpha1.KindQueue, plural: "queues", singular: "queue", short: "bq", scope: apiextensionsv1.ClusterScoped,
		object: reflect.TypeFor[v1alpha1.Queue](), limits: queueLimits, rules: objectRules,
		columns: []column{
			{Name: "Parent", Type: "string", JSONPath: ".spec.parent", Description: "The queue above this one."},
			{Name: "Tier", Type: "string", JSONPath: ".spec.tier", Description: "Guaranteed, Standard or Scavenger."},
			{Name: "Priority", Type: "integer", JSONPath: ".spec.priority", Priority: 1, Description: "The order of the queues of one tier."},
			{Name: "GPU quota", Type: "string", JSONPath: `.status.quota.nvidia\.com/gpu`, Description: "The quota of nvidia.com/gpu."},
			{Name: "GPU share", Type: "string", JSONPath: `.status.share.nvidia\.com/gpu`, Description: "The fair share of nvidia.com/gpu."},
			{Name: "GPU used", Type: "string", JSONPath: `.status.allocated.nvidia\.com/gpu`, Description: "How much of nvidia.com/gpu placed tasks hold."},
			{Name: "Pending", Type: "integer", JSONPath: ".status.pendingJobs", Description: "The number of jobs with pending tasks."},
			{Name: "Active", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + v1alpha1.ConditionActive + `")].status`, Priority: 1, Description: "Whether jobs of the queue can be placed."},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		},
	},
	{
		name: v1alpha1.KindModel, plural: "models", singular: "model", short: "bm", scope: apiextensionsv1.NamespaceScoped,
		object: reflect.TypeFor[v1alpha1.Model](), limits: modelLimits, rules: specRules,
		columns: []column{
			{Name: "Group", Type: "string", JSONPath: ".status.groupName", Description: "The node group that was chosen for all replicas."},
			{Name: "Ready", Type: "integer", JSONPath: ".status.readyReplicas", Description: "The number of replicas that answer requests."},
			{Name: "Desired", Type: "integer", JSONPath: ".spec.replicas", Description: "The number of replicas that are wanted."},
			{Name: "Nodes/Replica", Type: "integer", JSONPath: ".status.nodesPerReplica", Description: "The number of nodes of a replica."},
			{Name: "Placed", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + v1alpha1.ConditionPlaced + `")].reason`, Priority: 1, Description: "Whether all replicas have nodes, or why not."},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		},
		scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.currentReplicas", LabelSelectorPath: new(".status.selector"),
		},
	},
}

// fullName returns the name of the definition.
func (k *kind) fullName() string { return k.plural + "." + v1alpha1.Group }

// file returns the name of the file with the definition.
func (k *kind) file() string { return k.fullName() + ".yaml" }

// generate returns the definition as YAML. Dir is the directory of the Go types.
func (k *kind) generate(dir string) ([]byte, error) {
	text, err := readComments(dir)
	if err != nil {
		return nil, err
	}
	b := builder{comments: text, limits: k.limits(), used: map[string]bool{}}
	root, err := b.schemaOf(k.object)
	if err != nil {
		return nil, err
	}
	if unused := b.unused(); len(unused) > 0 {
		slices.Sort(unused)
		return nil, fmt.Errorf("there are limits for fields that do not exist: %q", unused)
	}
	root.XValidations = k.rules
	object, err := asMap(k.definition(&root))
	if err != nil {
		return nil, err
	}
	delete(object, "status") // the API server writes it
	out, err := yaml.Marshal(object)
	return append([]byte(header), out...), err
}

func (k *kind) definition(root *schema) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.fullName()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1alpha1.Group,
			Scope: k.scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: k.plural, Singular: k.singular, Kind: k.name, ListKind: k.name + "List",
				ShortNames: []string{k.short}, Categories: []string{"berth"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: v1alpha1.Version, Served: true, Storage: true,
				Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: k.scale},
				AdditionalPrinterColumns: k.columns,
			}},
		},
	}
}

// asMap returns the JSON form of the definition.
func asMap(d *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	text, err := yaml.Marshal(d)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, yaml.Unmarshal(text, &out)
}
