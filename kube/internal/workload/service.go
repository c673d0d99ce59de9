package workload

import (
	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/feed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServicePort is the port of the Service of a model.
const ServicePort = 80

// Service returns the Service of the model: it has the name of the model and selects the pods that
// answer requests.
func Service(m *v1alpha1.Model) *corev1.Service {
	labels := map[string]string{feed.LabelModel: m.Name, LabelManagedBy: Manager}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: ownedMeta(m, m.Name, labels),
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{feed.LabelModel: m.Name, LabelServes: "true"},
			Ports:    []corev1.ServicePort{{Name: portName, Port: ServicePort, TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP}},
		},
	}
}
