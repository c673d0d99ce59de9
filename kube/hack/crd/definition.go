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

const (
	plural   = "queues"
	fullName = plural + "." + v1alpha1.Group
	fileName = fullName + ".yaml"
	header   = "# Written by `make crd`; change api/v1alpha1 and kube/hack/crd instead.\n"
)

// columns are what kubectl get shows. Those with a priority above 0 are shown with -o wide.
var columns = []apiextensionsv1.CustomResourceColumnDefinition{
	{Name: "Parent", Type: "string", JSONPath: ".spec.parent", Description: "The queue above this one."},
	{Name: "Tier", Type: "string", JSONPath: ".spec.tier", Description: "Guaranteed, Standard or Scavenger."},
	{Name: "Priority", Type: "integer", JSONPath: ".spec.priority", Priority: 1, Description: "The order of the queues of one tier."},
	{Name: "GPU quota", Type: "string", JSONPath: `.status.quota.nvidia\.com/gpu`, Description: "The quota of nvidia.com/gpu."},
	{Name: "GPU share", Type: "string", JSONPath: `.status.share.nvidia\.com/gpu`, Description: "The fair share of nvidia.com/gpu."},
	{Name: "GPU used", Type: "string", JSONPath: `.status.allocated.nvidia\.com/gpu`, Description: "How much of nvidia.com/gpu placed tasks hold."},
	{Name: "Pending", Type: "integer", JSONPath: ".status.pendingJobs", Description: "The number of jobs with pending tasks."},
	{Name: "Active", Type: "string", JSONPath: `.status.conditions[?(@.type=="` + v1alpha1.ConditionActive + `")].status`, Priority: 1, Description: "Whether jobs of the queue can be placed."},
	{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
}

// generate returns the definition as YAML. Dir is the directory of the Go types.
func generate(dir string) ([]byte, error) {
	text, err := readComments(dir)
	if err != nil {
		return nil, err
	}
	b := builder{comments: text, limits: limits(), used: map[string]bool{}}
	root, err := b.schemaOf(reflect.TypeFor[v1alpha1.Queue]())
	if err != nil {
		return nil, err
	}
	if unused := b.unused(); len(unused) > 0 {
		slices.Sort(unused)
		return nil, fmt.Errorf("there are limits for fields that do not exist: %q", unused)
	}
	root.XValidations = objectRules
	object, err := asMap(definition(&root))
	if err != nil {
		return nil, err
	}
	delete(object, "status") // the API server writes it
	out, err := yaml.Marshal(object)
	return append([]byte(header), out...), err
}

func definition(root *schema) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: fullName},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1alpha1.Group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: "queue", Kind: v1alpha1.KindQueue, ListKind: v1alpha1.KindQueue + "List",
				ShortNames: []string{"bq"}, Categories: []string{"berth"},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: v1alpha1.Version, Served: true, Storage: true,
				Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root},
				Subresources:             &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				AdditionalPrinterColumns: columns,
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
